#!/bin/bash
# Ring sets: the best one of each model on one, two and three nodes, built by a stock NCCL edge by edge and NIC by NIC, in
# cuMem mode, where NCCL connects rings at the first collectives.
# level: all
. "$(dirname "${BASH_SOURCE[0]}")/shim.sh"

for model in amd-4gpu intel-4gpu dual-8gpu epyc-8gpu; do
    for nodes in 1 2 3; do
        step "$model on $nodes"
        mapfile -t names < <(yes $model | head -n $nodes)
        make_plans --rings auto "${names[@]}"
        rings=$(sed -n 's/^chain //p' "${plans[0]}" | tr '|' '\n' | wc -l)
        run_planned $model --nodes $nodes
        as_planned
        said "TCCL INFO .*built as planned" $nodes
    done
done
