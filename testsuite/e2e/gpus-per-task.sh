#!/bin/bash
# Each task sees one GPU (--gpus-per-task); the ring is still over all GPUs of the step.
# cluster: mixed
# level: quick
. "$(dirname "$0")/lib.sh"

srun_show -w n1,n2 -N2 --ntasks-per-node=4 --gpus-per-task=1 --tccl=on
has_ring 8
as_solved 0 n1:0-3 n2:0-3
