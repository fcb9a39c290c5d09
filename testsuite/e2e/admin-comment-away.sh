#!/bin/bash
# contrib/admin-comment while AccountingHost, slurmctld or slurmdbd are away: that is said, jobs wait, and get their
# AdminComment when all are back; and of two at a time one goes.
# cluster: own
# level: all
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/comment-lib.sh"

fails() { # LINE-PATTERN
    status=0
    comment || status=$?
    equal "exit status" "$status" 1
    matches "the line" "$(cat "$work/comment")" "$1"
}

comment_cluster

# AccountingHost is away.
step -N2 --gpus-per-node=4 -J later
mini stop-tccld n1
fails "tccl: tcclacct: *"
mini start-tccld n1

# slurmctld is away, and then knows the job no more.
mini stop-daemon slurmctld
fails "tccl: scontrol: *"
mini start-daemon slurmctld
comment
shows "$job" "$ring2*"

# slurmdbd is away.
step -N2 --gpus-per-node=4 -J last
mini stop-daemon slurmdbd
fails "tccl: sacct: *"
mini start-daemon slurmdbd
comment
shows "$job" "$ring2*"

# Another one runs.
exec 9>"$cluster/comment.json.lock"
flock 9
fails "tccl: *: another admin-comment runs"
exec 9>&-
comment
