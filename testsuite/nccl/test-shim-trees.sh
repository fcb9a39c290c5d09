#!/bin/bash
# Where NCCL reads the planned ring from a graph file, it has the planned tree from there, too: its trees go through each
# node in the planned order, up and down. In cuMem mode.
# level: all
export TCCL_NCCL=${TCCL_NCCL:-2.27.7}
"$(dirname "${BASH_SOURCE[0]}")/get-nccl" >/dev/null || { [ $? = 77 ] && echo "skipped: there is no NCCL $TCCL_NCCL here (get-nccl VERSION)"; exit 77; }
. "$(dirname "${BASH_SOURCE[0]}")/shim.sh"

step "intel-4gpu on 2 nodes"
make_plans intel-4gpu intel-4gpu
run_planned intel-4gpu --nodes 2 --log "$work/log" --
said "TCCL INFO .*: ring .*model" 2
as_planned
python3 - "$work/log" "${plans[@]}" <<'PYTHON' || { show_log; fail "not the planned trees"; }
import glob
import re
import sys
neighbours = {}
for path in glob.glob(sys.argv[1] + "/*"):
    with open(path, errors="replace") as file:
        for line in file:
            found = re.search(r" Trees (\[.*)", line)
            for down, rank, up in re.findall(r"\[\d+\] ([-\d/]+)->(\d+)->(-?\d+)", found[1] if found else ""):
                others = {int(other) for other in down.split("/") + [up]} - {-1}
                neighbours.setdefault(int(rank), []).append(others)
if sorted(neighbours) != list(range(8)):
    sys.exit(f"trees of ranks {sorted(neighbours)}")
for node, path in enumerate(sys.argv[2:]):
    with open(path) as file:
        said = dict(line.rstrip("\n").partition(" ")[::2] for line in file)
    gpus, tree = said["gpus"].split(), said["tree"].split()[3:]
    ring = re.findall(r"[0-9a-f]{4}:[0-9a-f:.]+", said["chain"])
    if tree in (ring, ring[::-1]):
        sys.exit("the tree goes along the ring: this shows nothing")
    order = [4 * node + gpus.index(gpu) for gpu in tree]
    for i, rank in enumerate(order):
        expected = set(order[max(i - 1, 0):i + 2]) - {rank}
        for others in neighbours[rank]:
            here = {other for other in others if other // 4 == node}
            if here != expected or (i > 1 and here != others):
                sys.exit(f"rank {rank} has {sorted(others)}, planned {order}")
PYTHON
