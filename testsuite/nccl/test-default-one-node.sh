#!/bin/bash
# NCCL's own ring on one node of each machine model is what tccl-path takes for it.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

status=0
for model in amd-4gpu intel-4gpu dual-8gpu epyc-8gpu; do
    run_ring "$work/rings" $model
    "$TCCL_BUILD/pathfind/tccl-path" eval --model "$machines/$model.json" --json >"$work/eval"
    "$here/compare-default" "$work/rings" "$work/eval" || status=1
done
exit $status
