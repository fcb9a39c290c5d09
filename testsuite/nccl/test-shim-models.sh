#!/bin/bash
# The best ring of each machine model, imposed on a stock NCCL by the shim: on one node, where NCCL
# alone builds another one.
# level: quick
. "$(dirname "${BASH_SOURCE[0]}")/shim.sh"

for model in amd-4gpu intel-4gpu dual-8gpu epyc-8gpu; do
    step "$model"
    make_plans $model
    run_planned $model
    as_planned
    said "TCCL INFO .*model" 1
done
