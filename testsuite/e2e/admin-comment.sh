#!/bin/bash
# tccl-comment: Slurm's own sacct shows the rings of jobs, running, ended and forgotten by slurmctld;
# other people's AdminComment stays; at most one update a second; slurmctld and tccld may be away.
# cluster: own
. "$(dirname "$0")/lib.sh"

PATH=$PATH:/usr/sbin:/sbin
for program in slurmdbd mariadbd mariadb-install-db sacctmgr; do
    command -v $program >/dev/null || skip "no $program here (contrib/setup test)"
done
own_cluster --nodes 2 --accounting --slurm-conf MinJobAge=2 --slurm-conf MessageTimeout=10
[ -x "$cluster/bin/tccl-comment" ] || skip "this build has no tccl-comment (no libslurm)"

comment() { # OPTION...: its lines go to $work/comment
    admin tccl-comment --node n1 "$@" >"$work/comment" 2>&1
}

# For what the daemon does in its own time.
patiently() { # WHAT COMMAND...
    (eventually "$@") || (eventually "$@") || eventually "$@"
}

shown() { # JOB
    admin sacct -nPX -j "$1" -o AdminComment
}

shows() { # JOB PATTERN
    matches "AdminComment of job $1" "$(shown "$1")" "$2"
}

ended() { # JOB: for slurmdbd, too
    [[ $(admin sacct -nPX -j "$1" -o State) =~ ^(COMPLETED|CANCELLED) ]]
}

step() { # SRUN-OPTION...: a step with a ring that has ended; sets job
    srun_show --tccl=on "$@"
    job=$(job_of)
    eventually "a record of $job" has_record "$job" 0
    eventually "the end of job $job" ended "$job"
}

running() { # NAME SRUN-OPTION...: a job that goes on; sets job
    local name=$1
    shift
    user srun -J "$name" --tccl=on "$@" sleep 600 >/dev/null 2>&1 </dev/null &
    eventually "a job $name" job_runs "$name"
    job=$(admin squeue -h -n "$name" -o %i)
    eventually "a record of $job" has_record "$job" 0
}

job_runs() { # NAME
    [ "$(admin squeue -h -n "$1" -o %T)" = RUNNING ]
}

end_job() { # JOB
    admin scancel "$1"
    eventually "the end of job $1" ended "$1"
}

not_built() { # JOB
    [ "$(record "$1" 0 built)" = "not used" ]
}

updates() {
    grep -c '^tccl: job [0-9]*: AdminComment in ' "$work/comment" || true
}

ring2="tccl: ring 2 nodes 8 GPUs *.* GB/s *.*x"

# Nothing happens unless it is allowed.
step -N2 --gpus-per-node=4 -J first
first=$job
status=0
comment --once || status=$?
equal "exit status" "$status" 2
matches "the line" "$(cat "$work/comment")" "tccl: AdminComment=yes is not set in *: nothing is done"
equal "AdminComment" "$(shown "$first")" ""
sed -i 's/^\[peers\]/AdminComment=yes\n[peers]/' "$cluster/tccl.conf"

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
equal "tasks that show a ring" "$(admin sacct -nPX -j "$array" -o AdminComment | grep -c '^tccl: ring 2 GPUs ')" 20

# AccountingHost is away: that is said, and nothing lost.
step -N2 --gpus-per-node=4 -J later
mini stop-tccld n1
status=0
comment --once || status=$?
equal "exit status" "$status" 1
matches "the line" "$(cat "$work/comment")" "tccl: no records from n1: *"
mini start-tccld n1

# slurmctld is away, and then knows the job no more; the daemon goes on when it is back.
mini stop-daemon slurmctld
"$root/contrib/minicluster" run -- tccl-comment --node n1 >"$work/daemon" 2>&1 &
daemon=$!
patiently "it waits for slurmctld" grep -q 'slurmctld: .*; tried again in ' "$work/daemon"
mini start-daemon slurmctld
shown_now() { [[ $(shown "$job") == $ring2* ]]; }
patiently "the AdminComment of job $job" shown_now
status=0
admin tccl-comment --node n1 --once >"$work/comment" 2>&1 || status=$?
equal "exit status of a second one" "$status" 1
matches "the line" "$(cat "$work/comment")" "tccl: *: another tccl-comment runs"
kill -HUP "$daemon"
patiently "it read its configuration" grep -q 'the configuration was read again' "$work/daemon"
kill "$daemon"
status=0
wait "$daemon" || status=$?
equal "exit status of the daemon" "$status" 0

# A job that slurmctld has forgotten.
step -N2 --gpus-per-node=4 -J forgotten
forgotten() { ! admin scontrol show job "$job"; }
eventually "that slurmctld forgets job $job" forgotten
comment --once
shows "$job" "$ring2*"
