#!/bin/bash
# contrib/admin-comment: Slurm's own sacct shows the rings of jobs, running, ended and forgotten by slurmctld; an
# AdminComment that somebody else has written stays; nothing is written twice; at most one update a second.
# cluster: own
# level: all
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/comment-lib.sh"

comment_cluster

# What would be written; then it is, and not again.
step -N2 --gpus-per-node=4 -J first
first=$job
eventually "that no ring was built" not_built "$first"
comment --dry-run
matches "what would be written" "$(cat "$work/comment")" "$first $ring2*"
equal "AdminComment" "$(shown "$first")" ""
[ ! -e "$cluster/comment.json" ] || fail "a dry run has written its state"
comment
shows "$first" "$ring2, built: no call"
equal "updates" "$(updates)" 1
comment
equal "updates" "$(updates)" 0
rm "$cluster/comment.json"
comment
equal "updates without a memory" "$(updates)" 0

# A running job, at once and after its end, when all letters are as they were in slurmctld.
running kept -N2 --gpus-per-node=4
comment
shows "$job" "$ring2"
end_job "$job"
matches "AdminComment of job $job" "$(shown "$job")" "$ring2"
eventually "that no ring was built" not_built "$job"
comment
shows "$job" "$ring2, built: no call"

# What stands there stays, in either place.
theirs="it's \"theirs\" \\ ; \$(x)"
running theirs -N2 --gpus-per-node=4
admin scontrol update "JobId=$job" "AdminComment=$theirs"
comment
matches "the line" "$(cat "$work/comment")" "*job $job: AdminComment is left as it is: somebody else has written it*"
end_job "$job"
equal "their AdminComment" "$(shown "$job")" "$theirs"
eventually "that no ring was built" not_built "$job"
comment
equal "their AdminComment" "$(shown "$job")" "$theirs"

# What a user calls a job is neither run nor taken for an AdminComment; and why there is no ring.
mini stop-tccld n2
step -N2 --gpus-per-node=4 -J "x'; DROP TABLE x; \$(touch $work/pwned) \"
tccl: ring"
mini start-tccld n2
comment
shows "$job" "tccl: no ring: n2: *"
[ ! -e "$work/pwned" ] || fail "a job's name was run"

# Many jobs, the tasks of an array: one update a second, and each task its own.
array=$(user sbatch --parsable --array=1-8 -N1 --gpus-per-node=4 --tccl=on --output=/dev/null --wrap 'srun true')
array_ended() { [ "$(admin sacct -nPX -j "$array" -o State | grep -c COMPLETED)" = 8 ]; }
eventually "the end of 8 jobs" array_ended
recorded_all() { [ "$(admin tcclacct -nP -o jobid,jobname -S now-1hour | grep -c '\.0|wrap$')" = 8 ]; }
eventually "8 records" recorded_all
start=${EPOCHREALTIME/[.,]/}
comment
took=$((${EPOCHREALTIME/[.,]/} - start))
count=$(updates)
[ "$count" -ge 8 ] || fail "only $count updates of 8 jobs"
[ $took -ge $(((count - 1) * 1000000)) ] || fail "$count updates took only $took us"
scripts_of() { # PROGRAM: what it shows of the array's scripts
    admin "$1" -nP -j "$array" -o jobid,jobidraw | grep '\.batch|' | sort
}
equal "tcclacct's ids of the array" "$(scripts_of tcclacct)" "$(scripts_of sacct)"
equal "tasks that show a ring" "$(admin sacct -nPX -j "$array" -o AdminComment | grep -ci '^tccl: ring 4 GPUs ')" 8

# A running task of an array: it alone.
array=$(user sbatch --parsable --array=1-2 -N1 --gpus-per-node=4 --tccl=on --output=/dev/null \
    --wrap '[ $SLURM_ARRAY_TASK_ID = 1 ] || srun --tccl=off sleep 600')
last_runs() { [ "$(admin squeue -h -j "${array}_2" -o %T)" = RUNNING ] && has_record "${array}_2" batch; }
eventually "its last task" last_runs
first_ended() { ended "${array}_1" && record_matches "${array}_1" batch state left; }
eventually "the end of its first task, whose script built no ring" first_ended
comment
shows "${array}_1" "tccl: nothing to do: the job script used no *"
shows "${array}_2" "tccl: ring 4 GPUs *"
end_job "${array}_2"

# A job that slurmctld has forgotten.
step -N2 --gpus-per-node=4 -J forgotten
forgotten() { ! admin scontrol show job "$job"; }
eventually "that slurmctld forgets job $job" forgotten
comment
shows "$job" "$ring2*"
