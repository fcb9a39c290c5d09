#!/bin/bash
# Four nodes of two kinds: one ring through all, as tccl-path solves it for the same nodes.
# cluster: mixed
. "$(dirname "$0")/lib.sh"

srun_show -N4 --gpus-per-node=4 --ntasks-per-node=4 --tccl=on
equal "exit status" "$status" 0
applied 16
as_solved n1,n2,n3,n4 0 --node "$models/amd-4gpu.json=2" --node "$models/intel-4gpu.json=2" --gpus 0-3
recorded "$(job_of)" 0 gpus 16
recorded "$(job_of)" 0 state applied
