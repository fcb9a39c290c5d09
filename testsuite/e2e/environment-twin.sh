#!/bin/bash
# TCCL=on in the environment does what --tccl=on does; the command line goes before it.
# cluster: mixed
# level: quick
. "$(dirname "$0")/lib.sh"

TCCL=on srun_show -w n1 -N1 --gpus-per-node=4 --ntasks-per-node=1
has_ring 1
TCCL=on srun_show -w n1 -N1 --gpus-per-node=4 --ntasks-per-node=1 --tccl=off
none_has TCCL_RING
none_has TCCL_STATE
TCCL=off srun_show -w n1 -N1 --gpus-per-node=4 --ntasks-per-node=1 --tccl=on
has_ring 1
cat >"$work/job" <<JOB
#!/bin/bash
srun --ntasks-per-node=1 $work/show
JOB
TCCL=on batch -w n1 -N1 --gpus-per-node=4 "$work/job"
has_ring 1 0
