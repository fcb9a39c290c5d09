#!/bin/bash
# The minicluster itself: touches nothing that it did not make, cleans up a start that fails half-way,
# ends steps that still run, and can be stopped twice.
# cluster: own
# level: quick
. "$(dirname "$0")/lib.sh"

dir=/tmp/tccl-test-mini-$$
trap 'rm -rf "$dir-other"; mini stop --dir "$dir"' EXIT
processes() { # that know the folder
    grep -lsaz -- "$dir[/]" /proc/[0-9]*/cmdline || true
}

mkdir "$dir-other"
echo keep >"$dir-other/file"
for command in start stop "run -- true"; do
    ! mini ${command%% *} --dir "$dir-other" ${command#start} 2>"$dir-other/err" || fail "$command touched a foreign folder"
done
equal "file in a foreign folder" "$(cat "$dir-other/file")" keep

! mini start --dir "$dir" --bare --nodes 2 --slurm-conf 'SelectType=select/none_such' || fail "a bad start succeeded"
[ ! -e "$dir" ] || fail "a failed start left its folder"
equal "processes after a failed start" "$(processes)" ""

mini start --dir "$dir" --bare --nodes 3
! mini start --dir "$dir" --bare || fail "started twice"
mini status --dir "$dir"
mini run --dir "$dir" --as nobody -- srun -N3 --gpus-per-node=4 sleep 321 &
started() { [ "$(pgrep -cxf '.*bin/sleep 321' || true)" -ge 3 ]; }
eventually "the step" started
mini stop --dir "$dir"
wait $! || true
equal "processes after stop" "$(processes)" ""
! pgrep -xf '.*bin/sleep 321' || fail "tasks are left"
[ ! -e "$dir" ] || fail "stop left the folder"
mini stop --dir "$dir"
status=0
mini status --dir "$dir" || status=$?
equal "status when stopped" "$status" 3
