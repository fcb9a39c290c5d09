#!/bin/bash
# An sbatch job with several srun: the job's option reaches them; the one with --tccl=off inherits
# nothing; each step has a record of its own. A job of many steps prints a line once, but each with TCCL_DEBUG.
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
has_ring 8 0
as_solved 0 n1:0-3 n2:0-3
equal "tasks of the step without" "$(tasks 1)" 8
for name in TCCL_STATE TCCL_RING TCCL_GBPS TCCL_BASELINE_GBPS TCCL_PLAN TCCL_REASON LD_PRELOAD; do
    none_has $name 1
done
has_ring 4 2
as_solved 2 n1:0-3
for step in 0 2; do recorded "$job" $step state planned; done
recorded "$job" 1 state off

cat >"$work/job" <<JOB
#!/bin/bash
for i in {1..10}; do srun -c 1 -w n1 -N1 -n1 true; done
for i in {1..5}; do srun -c 1 -w n1,n2 -N2 -n2 true; done
for i in {1..3}; do srun -c 1 -w n1 -N1 -n1 --overlap true & done
wait
TCCL_DEBUG=WARN srun -c 1 -w n1 -N1 -n1 true
JOB
batch -w n1,n2 -N2 -c 8 --gpus-per-node=4 --tccl=on "$work/job"
grep -o 'tccl: .*' "$work/batch" >"$work/lines"
line() { # NUMBER SHELL-PATTERN
    matches "line $1" "$(sed -n "$1p" "$work/lines")" "$2"
}
four=$(sed -n 2p "$work/lines")
equal "lines" "$(wc -l <"$work/lines")" 4
line 1 'tccl: *ring* of 4 GPUs: *, for this job script alone, on n1'
line 2 'tccl: *ring* of 4 GPUs: * GB/s*'
line 3 'tccl: *ring* of 2 nodes, 8 GPUs: * GB/s*'
line 4 "$four" # with TCCL_DEBUG
table=$cluster/nodes/n1/run/printed
equal "owner and mode" "$(stat -c '%u %a' "$table")" "$(stat -c %u "$cluster/nodes/n1/run") 600"
