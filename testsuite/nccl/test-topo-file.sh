#!/bin/bash
# NCCL_TOPO_FILE is free for tests: an invented bridge over two GPUs that are far apart makes NCCL
# join them by P2P; all that the file does not name stays as the machine has it.
# level: all
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

cat >"$work/topo.xml" <<'TOPO'
<system version="1">
<cpu numaid="3">
<pci busid="0000:f0:00.0" class="0x060400">
<pci busid="0000:01:00.0"/>
<pci busid="0000:44:00.0"/>
</pci>
</cpu>
</system>
TOPO
"$here/write-graph" "$machines/amd-4gpu.json" 1,0,2,3 0 0 >"$work/graph.xml"
run_ring "$work/rings" amd-4gpu --nodes 2 --graph "$work/graph.xml" --set "NCCL_TOPO_FILE=$work/topo.xml" \
    --set NCCL_P2P_LEVEL=PXB
look "$work/rings" '
for ring in comms["comm 0"]["channels"]:
    for edge in ring["edges"]:
        pair = (edge["from"], edge["to"])
        inside = edge["from"] // 4 == edge["to"] // 4
        wanted = "NET" if not inside else "P2P" if (pair[0] % 4, pair[1] % 4) == (0, 2) else "SHM"
        expect(f"the transport of {pair}", edge["send"]["kind"], wanted)'
