#!/bin/bash
# --tccl=require: a step that can't have a ring fails with the reason, and drains no node; one that
# can have it runs. Where slurmctld doesn't answer, the step is not kept waiting for it.
# cluster: mixed
# level: quick
. "$(dirname "$0")/lib.sh"

srun_show -N2 --gpus-per-node=4 --ntasks-per-node=2 --tccl=require
equal "exit status" "$status" 0
has_ring 4
mini stop-tccld n2
at_end+=("mini start-tccld n2" wait_long)
wait_little
srun_show -w n1,n2 -N2 --gpus-per-node=4 --ntasks-per-node=2 --tccl=require
[ "$status" != 0 ] || fail "srun ended with 0"
equal "tasks" "$(tasks)" 0
grep -q 'tccl: ' "$work/err" || fail "no reason was said"
nodes_are_up
cat >"$work/job" <<JOB
#!/bin/bash
srun --ntasks-per-node=1 --tccl=require $work/show || echo step failed
JOB
batch -w n1,n2 -N2 --gpus-per-node=4 "$work/job"
grep -q '^step failed' "$work/batch" || fail "the step in the batch job did not fail"
nodes_are_up

echo "--- slurmctld doesn't answer when it is to end the step"
signal() { # SIGNAL DAEMON
    kill -"$1" "$(<"$cluster/pid/$2")"
}
mini start-tccld n2
wait_long
cat >"$work/job" <<JOB
#!/bin/bash
touch $work/allocated
until [ -e $work/go ]; do sleep 0.1; done
srun --ntasks-per-node=1 --tccl=require $work/show
JOB
rm -f "$work"/seen/*
at_end+=("signal CONT slurmctld" "signal CONT slurmd@n2")
job=$(user sbatch --parsable --output="$work/batch" -w n1,n2 -N2 --gpus-per-node=4 "$work/job")
eventually "the job" test -e "$work/allocated"
signal STOP slurmd@n2
touch "$work/go"
eventually "its step on n1" has_stepd "$job.0"
signal STOP slurmctld
mini stop-tccld n2
eventually "what is said" grep -q "can't be ended" "$work/batch"
signal CONT slurmctld
signal CONT slurmd@n2
eventually "end of job $job" job_ended "$job"
cat "$work/batch"
equal "tasks" "$(find "$work/seen" -type f | wc -l)" 0
equal "lines on the ring" "$(grep -c 'tccl: no ring: n2: ' "$work/batch")" 1
grep -q "tccl: the step can't be ended on the other nodes: slurmctld has not answered within 10 s" "$work/batch" ||
    fail "says something else"
nodes_are_up
