#!/bin/bash
# Two nodes of one kind: one ring through both, the same for every task.
# cluster: mixed
# level: quick
. "$(dirname "$0")/lib.sh"

srun_show -w n1,n2 -N2 --gpus-per-node=4 --ntasks-per-node=4 --tccl=on
equal "exit status" "$status" 0
has_ring 8
as_solved 0 n1:0-3 n2:0-3
recorded "$(job_of)" 0 n_nodes 2
recorded "$(job_of)" 0 nodes 'n\[1-2\]'
