#!/bin/bash
# NCCL's own rings on each machine model, on one node and on two, are those that we take for the baseline.
# level: all
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

models=()
for model in amd-4gpu intel-4gpu dual-8gpu epyc-8gpu quad-8gpu h100-8gpu; do
    models+=("$machines/$model.json")
done
"$here/check-baseline" "$work" "${models[@]}" --subsets 0 || no_ring $? "NCCL chooses otherwise"
