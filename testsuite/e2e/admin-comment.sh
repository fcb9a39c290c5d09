#!/bin/bash
# tccl-comment: Slurm's own sacct shows the rings of jobs, running, ended and forgotten by slurmctld; other
# people's AdminComment stays; at most one update a second.
# cluster: own
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/comment-lib.sh"

comment_cluster

# Nothing happens unless it is allowed.
step -N2 --gpus-per-node=4 -J first
first=$job
eventually "that no ring was built" not_built "$first"
status=0
comment --once || status=$?
equal "exit status" "$status" 2
matches "the line" "$(cat "$work/comment")" "tccl: AdminComment=yes is not set in *: nothing is done"
equal "AdminComment" "$(shown "$first")" ""
allow_comments

# What would be written; then it is, and not again.
comment --dry-run
matches "what would be written" "$(cat "$work/comment")" "$first $ring2*"
equal "AdminComment" "$(shown "$first")" ""
comment --once
shows "$first" "$ring2, not used"
equal "updates" "$(updates)" 1
comment --once
equal "updates" "$(updates)" 0
rm "$cluster/nodes/n1/state/comment.json"
comment --once
equal "updates without a memory" "$(updates)" 0

# A running job, at once and after its end; what stands there stays.
theirs="it's \"theirs\" \\ ; \$(x)"
running kept -N2 --gpus-per-node=4
admin scontrol update "JobId=$job" "AdminComment=$theirs"
comment --once
shows "$job" "$ring2"
end_job "$job"
equal "their part" "$(shown "$job" | sed 's/; tccl: .*//')" "$theirs"
shows "$job" "*; $ring2"
eventually "that no ring was built" not_built "$job"
comment --once
equal "their part" "$(shown "$job" | sed 's/; tccl: .*//')" "$theirs"
shows "$job" "*; $ring2, not used"

# Whatever a job is called; and why there is no ring.
mini stop-tccld n2
step -N2 --gpus-per-node=4 -J "x'; DROP TABLE x; \$(touch $work/pwned) \"
tccl: ring"
mini start-tccld n2
comment --once
shows "$job" "tccl: no ring: n2: *"
[ ! -e "$work/pwned" ] || fail "a job's name was run"

# Many jobs, the tasks of an array: one update a second, and each task its own.
array=$(user sbatch --parsable --array=1-20 -N1 --gpus-per-node=2 --tccl=on --output=/dev/null --wrap true)
array_ended() { [ "$(admin sacct -nPX -j "$array" -o State | grep -c COMPLETED)" = 20 ]; }
eventually "the end of 20 jobs" array_ended
recorded_all() { [ "$(admin tcclacct -nP -o jobname -S now-1hour | grep -c '^wrap$')" = 20 ]; }
eventually "20 records" recorded_all
admin sacctmgr -nP list transactions Action="Modify Job" format=Time | sort >"$work/before"
start=${EPOCHREALTIME/[.,]/}
comment --once
took=$((${EPOCHREALTIME/[.,]/} - start))
count=$(updates)
[ "$count" -ge 20 ] || fail "only $count updates of 20 jobs"
[ $took -ge $(((count - 1) * 1000000)) ] || fail "$count updates took only $took us"
admin sacctmgr -nP list transactions Action="Modify Job" format=Time | sort >"$work/after"
equal "seconds with two updates" "$(comm -13 "$work/before" "$work/after" | uniq -d)" ""
scripts_of() { # PROGRAM: what it shows of the array's scripts
    admin "$1" -nP -j "$array" -o jobid,jobidraw | grep '\.batch|' | sort
}
equal "tcclacct's ids of the array" "$(scripts_of tcclacct)" "$(scripts_of sacct)"
equal "tasks that show a ring" "$(admin sacct -nPX -j "$array" -o AdminComment | grep -c '^tccl: ring 2 GPUs ')" 20

# A job that slurmctld has forgotten.
step -N2 --gpus-per-node=4 -J forgotten
forgotten() { ! admin scontrol show job "$job"; }
eventually "that slurmctld forgets job $job" forgotten
comment --once
shows "$job" "$ring2*"
