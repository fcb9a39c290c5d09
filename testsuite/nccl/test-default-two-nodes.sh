#!/bin/bash
# NCCL's own ring over two nodes of each machine model is what tccl-path takes for it,
# but for known-differences.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

for model in amd-4gpu intel-4gpu dual-8gpu epyc-8gpu; do
    run_ring "$work/rings" $model --nodes 2
    "$TCCL_BUILD/pathfind/tccl-path" eval --node "$machines/$model.json=2" --json >"$work/eval"
    same_default "$work/rings" "$work/eval" "$model, 2 nodes"
done
