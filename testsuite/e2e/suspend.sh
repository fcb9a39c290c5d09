#!/bin/bash
# Steps that are suspended: one with a ring keeps its plan, through a reload of tccld too, and goes on with it; one that
# waits for its plan is waited for no longer, and runs without a ring. Gang-scheduled jobs take turns with the CPUs, and have GPUs of
# their own: those of a suspended job go to nobody else.
# cluster: own
# level: all
. "$(dirname "$0")/lib.sh"

own_cluster --nodes 2
trap 'status=$?; kill -CONT "$(<"$cluster/pid/slurmd@n2")" || true; end_own_cluster "$cluster" $status' EXIT

# Tasks that note what they see, wait for $work/go, and note whether the plan can still be read.
write_task() {
    cat >"$work/task" <<TASK
#!/bin/sh
$work/show
until [ -e $work/go ]; do sleep 0.1; done
[ -z "\$TCCL_PLAN" ] || grep -q '^chain ' "\$TCCL_PLAN" && touch "$work/after/\$SLURM_JOB_ID.\$SLURM_PROCID"
TASK
    chmod 755 "$work/task"
}
write_task
begin() { # OUTPUT SBATCH-OPTION...: a job with a step of one task a node. Sets job.
    local output=$1
    shift
    job=$(user sbatch --parsable --output="$work/$output" -N2 "$@" --wrap "srun --ntasks-per-node=1 --tccl=on $work/task")
}
fresh() {
    rm -rf "$work"/seen/* "$work/go" "$work/after"
    mkdir -m 1777 "$work/after"
}
started() { [ "$(find "$work/seen" -type f | wc -l)" = "$1" ]; }
went_on() { [ "$(find "$work/after" -type f | wc -l)" = "$1" ]; }
in_state() { [ "$(admin squeue -h -j "$1" -o %T)" = "$2" ]; }
plans() { find "$cluster"/nodes/*/run -name plan -exec grep -l '^tccl-plan ' {} + | sort; } # a record may be there alone
stopped() { # are all tasks of the job?
    local states
    states=$(ps -o stat= -p "$(pgrep -d, -f "^/bin/sh $work/task")") && ! grep -qv '^T' <<<"$states"
}

echo "--- with a ring"
fresh
begin ring --gpus-per-node=4
eventually "tasks" started 2
before=$(plans)
equal "plans" "$(wc -l <<<"$before")" 2
admin scontrol suspend "$job"
eventually "suspension" in_state "$job" SUSPENDED
eventually "tasks that stand still" stopped
reload_all
touch "$work/go"
equal "plans of a suspended step" "$(plans)" "$before"
went_on 0 || fail "a suspended task goes on"
admin scontrol resume "$job"
eventually "end of job $job" job_ended "$job"
went_on 2 || fail "the plan is gone after the suspension"
collect
has_ring 2
recorded "$job" 0 state planned
equal "plans of a step that has ended" "$(plans)" ""

echo "--- while it waits for its plan"
fresh
touch "$work/go"
kill -STOP "$(<"$cluster/pid/slurmd@n2")"
begin waits --gpus-per-node=4
eventually "its step on n1" test -S "$cluster/nodes/n1/spool/n1_$job.0" # whom Slurm suspends; other clusters have a step $job.0, too
admin scontrol suspend "$job"
eventually "suspension" in_state "$job" SUSPENDED
recorded "$job" 0 state failed
kill -CONT "$(<"$cluster/pid/slurmd@n2")"
admin scontrol resume "$job"
# Slurm goes on with a job that was suspended while its step began once that has told srun that it runs, or after MessageTimeout; and
# srun stands still, too.
ended_or_goes_on() {
    pgrep -f "^srun --ntasks-per-node=1 --tccl=on $work/task" | xargs -r kill -CONT
    job_ended "$job"
}
eventually "end of job $job" ended_or_goes_on
collect
cat "$work/waits"
equal "tasks" "$(tasks)" 2
all_have TCCL_STATE failed
grep -q "tccl: no ring: n1: the step was sent a signal while it waited for its plan (cancelled or suspended)" "$work/waits" ||
    fail "does not say why"
nodes_are_up

echo "--- gang scheduling" # in a cluster of its own: it resumes what scontrol has suspended
own_cluster --nodes 2 --slurm-conf PreemptMode=GANG --slurm-conf SchedulerTimeSlice=5 \
    --slurm-conf 'PartitionName=gang Nodes=n[1-2] OverSubscribe=FORCE:2 MaxTime=60'
write_task
fresh
turns="-p gang --ntasks-per-node=1 -c64" # of all CPUs of the nodes
begin first $turns --gpus-per-node=2
first=$job
eventually "tasks" started 2
begin second $turns --gpus-per-node=2
second=$job
eventually "the first one's pause" in_state "$first" SUSPENDED
eventually "the second one's turn" in_state "$second" RUNNING
eventually "the second one's pause" in_state "$second" SUSPENDED
gpus() { admin scontrol -d show job "$1" | grep -o 'IDX:[0-9,-]*' | sort -u; }
equal "GPUs of the first one" "$(gpus "$first")" IDX:0-1
equal "GPUs of the second one" "$(gpus "$second")" IDX:2-3
begin third $turns --gpus-per-node=4
eventually "a reason why the third one waits" eval '[ "$(admin squeue -h -j $job -o %r)" = Resources ]'
in_state "$job" PENDING || fail "a job has GPUs of a suspended one"
user scancel "$job"
touch "$work/go"
eventually "end of job $first" job_ended "$first"
equal "tasks of the first one that went on with their plan" "$(find "$work/after" -name "$first.*" | wc -l)" 2
user scancel "$second" # Slurm takes minutes over a job that was suspended while it began
eventually "end of job $second" job_ended "$second"
recorded "$first" 0 state planned
