#!/bin/bash
# tccl-comment while AccountingHost, slurmctld or slurmdbd are away: jobs wait, and get their AdminComment when
# all are back.
# cluster: own
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/comment-lib.sh"

# For what the daemon does in its own time.
patiently() { # WHAT COMMAND...
    (eventually "$@") || eventually "$@"
}

comment_cluster
allow_comments

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

# slurmdbd is away.
step -N2 --gpus-per-node=4 -J last
mini stop-daemon slurmdbd
status=0
comment --once || status=$?
equal "exit status" "$status" 1
matches "the line" "$(cat "$work/comment")" "tccl: slurmdbd: *"
mini start-daemon slurmdbd
comment --once
shows "$job" "$ring2*"
