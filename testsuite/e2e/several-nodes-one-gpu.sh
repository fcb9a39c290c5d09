#!/bin/bash
# One GPU on each of several nodes: a ring over the network ports alone.
# cluster: mixed
# level: quick
. "$(dirname "$0")/lib.sh"

srun_show -N4 --gpus-per-node=1 --ntasks-per-node=1 --tccl=on
applied 4
as_solved 0 n{1..4}:0
