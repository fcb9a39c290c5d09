#!/bin/bash
# An sbatch job with several srun: the job's option reaches them; the one with --tccl=off inherits
# nothing; each step has a record of its own.
# cluster: mixed
# level: quick
. "$(dirname "$0")/lib.sh"

cat >"$work/job" <<JOB
#!/bin/bash
$work/show
srun -c 1 --ntasks-per-node=4 $work/show
srun -c 1 --ntasks-per-node=4 --tccl=off $work/show
srun -c 1 -N1 -n4 -w n1 $work/show
JOB
batch -w n1,n2 -N2 -c 8 --gpus-per-node=4 --tccl=on "$work/job"
applied 8 0
as_solved 0 n1:0-3 n2:0-3
equal "tasks of the step without" "$(tasks 1)" 8
for name in TCCL_STATE TCCL_RING TCCL_GBPS TCCL_BASELINE_GBPS TCCL_PLAN TCCL_REASON LD_PRELOAD; do
    none_has $name 1
done
applied 4 2
as_solved 2 n1:0-3
for step in 0 2; do recorded "$job" $step state applied; done
recorded "$job" 1 state off
