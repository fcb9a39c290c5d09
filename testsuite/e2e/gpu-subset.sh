#!/bin/bash
# Two or three of a node's four GPUs: the ring is solved for exactly these. One GPU: nothing to do.
# cluster: mixed
# level: quick
. "$(dirname "$0")/lib.sh"

for count in 2 3; do
    srun_show -N4 --gpus-per-node=$count --ntasks-per-node=1 --tccl=on
    has_ring 4
    as_solved 0 n{1..4}:0-$((count - 1))
    recorded "$(job_of)" 0 gpus $((4 * count))
done
srun_show -N1 --gpus-per-node=1 --tccl=on
all_have TCCL_STATE left
none_has TCCL_RING
all_have TCCL_REASON "the step has one GPU"
recorded "$(job_of)" 0 state left
recorded "$(job_of)" 0 reason "the step has one GPU"
matches "the user's line" "$(cat "$work/err")" '*tccl: nothing to do: the step has one GPU*'
