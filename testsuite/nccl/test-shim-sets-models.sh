#!/bin/bash
# The best ring sets of the models on one, two and three nodes, of one kind and of several, as a stock NCCL builds them (see
# test-shim-sets). With an NCCL that reads a graph file in no time: TCCL_NCCL=2.30.7 and others: with that version.
# TCCL_CASES="dual-8gpu:3 …": these.
# level: all
export TCCL_NCCL=${TCCL_NCCL:-2.27.7}
"$(dirname "${BASH_SOURCE[0]}")/get-nccl" >/dev/null || { [ $? = 77 ] && echo "skipped: there is no NCCL $TCCL_NCCL here (get-nccl VERSION)"; exit 77; }
. "$(dirname "${BASH_SOURCE[0]}")/sets.sh"

if [ -n "${TCCL_CASES:-}" ]; then
    for one in $TCCL_CASES; do best "${one%:*}" "${one#*:}"; done
    exit 0
fi
for model in amd-4gpu intel-4gpu dual-8gpu epyc-8gpu h100-8gpu quad-8gpu lopsided-8gpu; do
    for nodes in 1 2; do best $model $nodes; done
done
best dual-8gpu 3
best amd-4gpu 1 intel-4gpu
