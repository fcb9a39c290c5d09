#!/bin/bash
# Four nodes of two kinds: one ring through all, as tccl-path solves it for the same nodes.
# cluster: mixed
# level: quick
. "$(dirname "$0")/lib.sh"

srun_show -N4 --gpus-per-node=4 --ntasks-per-node=4 --tccl=on
equal "exit status" "$status" 0
has_ring 16
as_solved 0 n{1..4}:0-3
recorded "$(job_of)" 0 gpus 16
recorded "$(job_of)" 0 state planned
