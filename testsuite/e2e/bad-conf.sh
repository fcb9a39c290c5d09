#!/bin/bash
# A bad key or value in tccl.conf: tccld and the tools refuse to start, one line names file, line and
# key. Steps go by the other keys where one is unknown, and no user is told; with a bad value they run without a ring and say so.
# cluster: mixed
# level: quick
. "$(dirname "$0")/lib.sh"

cp "$cluster/tccl.conf" "$cluster/tccl.conf.before"
at_end+=("mv $cluster/tccl.conf.before $cluster/tccl.conf")
refused() { # LINE PATTERN FUNCTION
    local ended=0 number tccld mode
    cp "$cluster/tccl.conf.before" "$cluster/tccl.conf"
    printf '[tccl]\n%s\n' "$1" >>"$cluster/tccl.conf"
    number=$(wc -l <"$cluster/tccl.conf")
    tccld=$(readlink -f "$cluster/bin/tccld")
    timeout 120 "$tccld" --foreground --config "$cluster/tccl.conf" --node n4 >"$work/out" 2>&1 || ended=$?
    cat "$work/out"
    [ "$ended" != 0 ] && [ "$ended" != 124 ] || fail "tccld ended with $ended"
    equal "lines" "$(wc -l <"$work/out")" 1
    matches "message" "$(cat "$work/out")" "*tccl.conf*$number*$2*"
    admin tcclacct >"$work/out" 2>&1 && fail "tcclacct ignores it" || true
    matches "message of tcclacct" "$(cat "$work/out")" "tccl*: *tccl.conf*$2*"
    for mode in off on; do
        srun_show -w n1 -N1 --gpus-per-node=4 --ntasks-per-node=2 --tccl=$mode
        equal "exit status" "$status" 0
        equal "tasks" "$(tasks)" 2
        "$3" $mode "$2"
    done
    user srun -N2 --gpus-per-node=4 --ntasks-per-node=1 --tccl=on env >"$work/out" 2>"$work/err"
    ! grep '^NCCL_' "$work/out" || fail "NCCL has settings that nobody made"
    nodes_are_up
}
untold() { # MODE KEY
    ! grep "$2" "$work/err" || fail "a user is told what is wrong with tccl.conf"
    [ $1 = off ] || has_ring 2
}
told() { # MODE KEY
    none_has TCCL_RING
    if [ $1 = off ]; then untold off "$2"; else says "*tccl: *tccl.conf*$2*"; fi
}
refused 'Sokket=/tmp/x' Sokket untold
refused 'Timeout=soon' Timeout told
