#!/bin/bash
# When NCCL asks for its files: the thread that makes a communicator asks for the topology once,
# then for the graph once for the ring and once for the tree; each communicator asks anew.
# level: quick
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

"$here/run-ring" "$machines/amd-4gpu.json" --preload "$TCCL_BUILD/testsuite/nccl/trace-getenv.so" -- --comms 2 \
    >"$work/rings" 2>"$work/questions" || fail "run-ring: $(tail -n 3 "$work/questions")"
python3 - "$work/questions" <<'PYTHON'
import sys
asked = {}
for line in open(sys.argv[1]):
    word, thread, name = line.split()
    asked.setdefault(thread, []).append(name)
makers = [names for names in asked.values() if "NCCL_GRAPH_FILE" in names]
if len(makers) != 4:
    sys.exit(f"FAILED: {len(makers)} threads asked for a graph, not 4")
for names in makers:
    files = [name for name in names if name in ("NCCL_TOPO_FILE", "NCCL_GRAPH_FILE")]
    if files != ["NCCL_TOPO_FILE", "NCCL_GRAPH_FILE", "NCCL_GRAPH_FILE"] * 2:
        sys.exit(f"FAILED: asked for {files}")
PYTHON
