#!/bin/bash
# Steps that are suspended: one with a ring keeps its plan, through a reload of tccld too, and goes on with it; one that
# waits for its plan is waited for no longer, and runs without a ring.
# cluster: own
# level: all
. "$(dirname "$0")/lib.sh"

own_cluster --nodes 2
trap 'status=$?; kill -CONT "$(<"$cluster/pid/slurmd@n2")" || true; end_own_cluster "$cluster" $status' EXIT

# Tasks that note what they see, wait for $work/go, and note whether the plan can still be read.
cat >"$work/task" <<TASK
#!/bin/sh
$work/show
until [ -e $work/go ]; do sleep 0.1; done
[ -z "\$TCCL_PLAN" ] || grep -q '^chain ' "\$TCCL_PLAN" && touch "$work/after/\$SLURM_JOB_ID.\$SLURM_PROCID"
TASK
chmod 755 "$work/task"
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
plans() { find "$cluster"/nodes/*/run -name plan | sort; }
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
applied 2
recorded "$job" 0 state applied
equal "plans of a step that has ended" "$(plans)" ""

echo "--- while it waits for its plan"
fresh
touch "$work/go"
kill -STOP "$(<"$cluster/pid/slurmd@n2")"
begin waits --gpus-per-node=4
eventually "its step on n1" pgrep -f "slurmstepd: \\[$job\\.0\\]"
admin scontrol suspend "$job"
eventually "suspension" in_state "$job" SUSPENDED
recorded "$job" 0 state fallback
kill -CONT "$(<"$cluster/pid/slurmd@n2")"
admin scontrol resume "$job"
eventually "end of job $job" job_ended "$job"
collect
cat "$work/waits"
equal "tasks" "$(tasks)" 2
all_have TCCL_STATE fallback
grep -q "tccl: no ring: n1: the step was sent a signal while it waited for its plan (cancelled or suspended)" "$work/waits" ||
    fail "does not say why"
nodes_are_up
