#!/bin/bash
# A step over 32 nodes of two kinds: one ring through all.
# cluster: wide
# level: quick
. "$(dirname "$0")/lib.sh"

srun_show -N32 --gpus-per-node=4 --ntasks-per-node=1 --tccl=on
equal "exit status" "$status" 0
applied 32
as_solved 0 n{1..32}:0-3
recorded "$(job_of)" 0 n_nodes 32
recorded "$(job_of)" 0 gpus 128
equal "ring in the record" "$(record "$(job_of)" 0 ring)" "$(values TCCL_RING)"
