#!/bin/bash
# One GPU on each of several nodes: a ring over the network ports alone.
# cluster: mixed
. "$(dirname "$0")/lib.sh"

srun_show -N4 --gpus-per-node=1 --ntasks-per-node=1 --tccl=on
applied 4
as_solved n1,n2,n3,n4 0 --node "$models/amd-4gpu.json=2" --node "$models/intel-4gpu.json=2" --gpus 0
