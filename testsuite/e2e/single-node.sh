#!/bin/bash
# One node with all its GPUs gets the closed ring that tccl-path solves, and a record of it.
# cluster: mixed
# level: quick
. "$(dirname "$0")/lib.sh"

srun_show -w n1 -N1 --gpus-per-node=4 --ntasks-per-node=4 --tccl=on
equal "exit status" "$status" 0
says 'tccl: *ring*GB/s*'
has_ring 4
as_solved 0 n1:0-3
job=$(job_of)
recorded "$job" 0 state planned
recorded "$job" 0 mode on
recorded "$job" 0 n_nodes 1
recorded "$job" 0 gpus 4
recorded "$job" 0 user nobody
equal "ring in the record" "$(record "$job" 0 ring)" "$(values TCCL_RING)"
