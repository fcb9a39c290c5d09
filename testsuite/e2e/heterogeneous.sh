#!/bin/bash
# A step over the components of a heterogeneous job: one ring over all of them, or none and why;
# never one ring for each.
# cluster: mixed
. "$(dirname "$0")/lib.sh"

srun_show -N1 --gpus-per-node=4 --ntasks-per-node=1 --tccl=on : \
    -N2 --gpus-per-node=2 --ntasks-per-node=1 --tccl=on
equal "exit status" "$status" 0
equal "tasks" "$(tasks)" 3
equal "states" "$(values TCCL_STATE | wc -l)" 1
case $(values TCCL_STATE) in
applied) equal "rings" "$(values TCCL_RING | wc -l)" 1 ;;
fallback)
    matches "reason" "$(values TCCL_REASON)" "*het*"
    none_has TCCL_RING
    ;;
*) fail "state $(values TCCL_STATE)" ;;
esac
recorded "$(job_of)" 0 state "$(values TCCL_STATE)"
