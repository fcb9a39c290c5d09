#!/bin/bash
# A ring that is longer than 4 KiB: each task sees its own node's chain and "…", the record has it all.
# cluster: wide
. "$(dirname "$0")/lib.sh"

srun_show -N32 --gpus-per-node=4 --ntasks-per-node=1 --tccl=on
applied_all=$(values TCCL_STATE)
equal "state" "$applied_all" applied
full=$(record "$(job_of)" 0 ring)
[ -n "$full" ] || { recorded "$(job_of)" 0 state applied; full=$(record "$(job_of)" 0 ring); }
if [ "${#full}" -le 4096 ]; then
    equal "the whole ring in the environment" "$(values TCCL_RING)" "$full"
else
    equal "different texts" "$(values TCCL_RING | wc -l)" 32
    equal "texts that end in …" "$(values TCCL_RING | grep -c '…$')" 32
fi
for node in n1 n17 n32; do matches "ring" "$full" "*$node\[*"; done
