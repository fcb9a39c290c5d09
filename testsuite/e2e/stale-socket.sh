#!/bin/bash
# A tccld that was killed leaves its socket: the next one takes its place. A second tccld is refused
# and leaves the first one working.
# cluster: mixed
# level: quick
. "$(dirname "$0")/lib.sh"

at_end+=("mini start-tccld n2 || true")
kill -KILL "$(cat "$cluster/pid/tccld@n2")"
eventually "death of tccld" test ! -e "/proc/$(cat "$cluster/pid/tccld@n2")"
[ -S "$cluster/nodes/n2/tccld.sock" ] || fail "no socket was left"
mini start-tccld n2
srun_show -w n1,n2 -N2 --gpus-per-node=4 --ntasks-per-node=1 --tccl=on
has_ring 2

status=0
tccld=$(readlink -f "$cluster/bin/tccld")
timeout 120 "$tccld" --foreground --config "$cluster/tccl.conf" --node n2 >"$work/out" 2>&1 || status=$?
cat "$work/out"
[ "$status" != 0 ] && [ "$status" != 124 ] || fail "the second tccld ended with $status"
grep -q 'tccl' "$work/out" || fail "the second tccld said nothing"
srun_show -w n1,n2 -N2 --gpus-per-node=4 --ntasks-per-node=1 --tccl=on
has_ring 2
