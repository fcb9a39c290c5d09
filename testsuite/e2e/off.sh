#!/bin/bash
# --tccl=off, and no option at all: nothing is set and nothing is said.
# cluster: mixed
# level: quick
. "$(dirname "$0")/lib.sh"

for option in --tccl=off ""; do
    srun_show -w n1,n2 -N2 --gpus-per-node=4 --ntasks-per-node=2 $option
    equal "exit status" "$status" 0
    equal "tasks" "$(tasks)" 4
    equal "variables" "$(grep -E ' (TCCL_[A-Z_]*|LD_PRELOAD)=' "$work/out" || true)" ""
    says_nothing
done
srun_show -w n1,n2 -N2 --gpus-per-node=4 --ntasks-per-node=2 --tccl=off
recorded "$(job_of)" 0 state off
