#!/bin/bash
# The user's own LD_PRELOAD entries stay, in order, through nested steps and with every mode.
# cluster: mixed
# level: quick
. "$(dirname "$0")/lib.sh"

first=$(ls /usr/lib/*-linux-gnu/libjansson.so.4)
second=$(ls /usr/lib/*-linux-gnu/libmunge.so.2)
cat >"$work/job" <<JOB
#!/bin/bash
export LD_PRELOAD=$first:$second
srun --ntasks-per-node=1 $work/show
srun --ntasks-per-node=1 --tccl=off $work/show
srun --ntasks-per-node=1 srun --overlap --ntasks-per-node=1 --tccl=off $work/show
JOB
batch -w n1 -N1 --gpus-per-node=4 --tccl=on "$work/job"
has_ring 1 0
matches "LD_PRELOAD with a ring" "$(values LD_PRELOAD 0)" "*$first:$second"
equal "LD_PRELOAD with --tccl=off" "$(values LD_PRELOAD 1)" "$first:$second"
equal "LD_PRELOAD in a nested step" "$(values LD_PRELOAD 3)" "$first:$second"
for step in 1 3; do none_has TCCL_RING $step; done
