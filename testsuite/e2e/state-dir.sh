#!/bin/bash
# A StateDir that is full, read-only, or becomes so while tccld has its store open: steps have their ring, tcclacct and
# tccl-check -q say what is wrong, to root and to a user, and the exit status is that of a failure.
# cluster: own
# level: all
. "$(dirname "$0")/lib.sh"

own_cluster --nodes 1
state=$cluster/nodes/n1/state

with_disk() { # MOUNT-OPTION
    mini stop-tccld n1
    mount -t tmpfs -o "mode=700,uid=$(id -u "$tccld_user"),$1" tmpfs "$state"
}

ring() {
    srun_show -N1 --gpus-per-node=4 --ntasks-per-node=1 --tccl=on
    has_ring 1
}

quiet_check() { # USER-FUNCTION SHELL-PATTERN: what tccl-check -q says of this node, in one line
    status=0
    "$1" tccl-check --node n1 --timeout 60 -q --only daemon >"$work/check" || status=$?
    cat "$work/check"
    equal "exit status of tccl-check" "$status" 1
    equal "lines" "$(wc -l <"$work/check")" 1
    matches "the line" "$(cat "$work/check")" "fail *daemon $2"
}

records_fail() { # SHELL-PATTERN
    ! user tcclacct >"$work/out" 2>"$work/err" || fail "tcclacct has no store, and does not say so"
    matches "what tcclacct says" "$(cat "$work/err")" "$1"
}

noted() { # SHELL-PATTERN: what tccl-check says, once tccld knows it
    [[ $(admin tccl-check --node n1 --timeout 60 -q --only daemon) == $1 ]]
}

without_disk() {
    mini stop-tccld n1
    umount "$state"
    mini start-tccld n1
}

echo "--- full"
with_disk size=4k
mini start-tccld n1
ring
records_fail "tccl: no records from n1: n1: no store of records: *records.db: *full*"
quiet_check admin "*StateDir=$state is full*: *records*"
quiet_check user "*StateDir=$state is full*: *records*"
without_disk

echo "--- read-only, and nothing in it"
with_disk size=1m
mount -o remount,ro "$state"
mini start-tccld n1
ring
records_fail "tccl: no records from n1: n1: no store of records: *Read-only file system*"
quiet_check admin "*StateDir=$state is read-only: *"
quiet_check user "*StateDir=$state is read-only: *"
without_disk

echo "--- becomes read-only: the records that are there can be read"
with_disk size=1m
mini start-tccld n1
ring
first=$(job_of)
recorded "$first" 0 state planned
# A file that is open for writing keeps a file system from becoming read-only; a mount of its own does not ask.
mount --bind "$state" "$state"
mount -o remount,bind,ro "$state"
quiet_check admin "*StateDir=$state is read-only: *"
quiet_check user "*StateDir=$state is read-only: *"
umount "$state"
umount --lazy "$state"
mini stop-tccld n1
mini start-tccld n1

echo "--- what tccld knows of a store that fails otherwise"
mini stop-tccld n1
mv "$state/records.db" "$work/kept"
rm -f "$state"/records.db*
dd if=/dev/urandom of="$state/records.db" bs=4k count=4 status=none
chown "$tccld_user" "$state/records.db"
mini start-tccld n1
ring
quiet_check admin "*new records are not stored: *records.db: *database*"
quiet_check user "*new records are not stored: *records.db: *database*"
