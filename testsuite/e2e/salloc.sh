#!/bin/bash
# salloc takes the option, and the steps inside have it; so does its environment twin.
# cluster: mixed
# level: quick
. "$(dirname "$0")/lib.sh"

user_show salloc -w n1,n2 -N2 --ntasks-per-node=4 --gpus-per-node=4 --tccl=on \
    srun --ntasks-per-node=4 "$work/show"
equal "exit status" "$status" 0
has_ring 8
as_solved 0 n1:0-3 n2:0-3
user_show env TCCL=on salloc -w n1 -N1 --ntasks-per-node=4 --gpus-per-node=4 \
    srun --ntasks-per-node=4 "$work/show"
has_ring 4
