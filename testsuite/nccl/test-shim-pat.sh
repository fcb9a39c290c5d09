#!/bin/bash
# One GPU on each of eight nodes, the NIC that is planned not NCCL's own: where NCCL takes PAT for the first collective, that connects
# neighbours of the ring, too, by the trees' NICs. The ring is the planned one all the same. (PAT itself can't run here.)
# level: all
. "$(dirname "${BASH_SOURCE[0]}")/sets.sh"

nodes=()
for _ in {1..8}; do nodes+=("dual-8gpu:0=mlx5_1 -m0> 0 -m0> mlx5_1"); done
step "PAT first"
make_plans "${nodes[@]}"
run_quietly dual-8gpu --gpus 0 --nodes 8 --launch refuse -- --go-on --collective all-gather:65536:f32 --collective all-gather:4194304:f32
python3 -c 'import json, sys; sys.exit([row[2] for row in json.load(open(sys.argv[1]))["launched"]][:2] != ["PAT", "RING"])' "$work/rings" ||
    fail "NCCL does not take PAT, then the ring"
as_planned
said "TCCL INFO communicator .*: built as planned" 8
no_warning
