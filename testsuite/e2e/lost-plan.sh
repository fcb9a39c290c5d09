#!/bin/bash
# A tccld dies with the plan of its node unread, when the first node has its ring already: the node goes
# without, and when its part of the step ends, the tccld that is there by then, or a moment later, puts its reason
# on record.
# cluster: own
# level: quick
. "$(dirname "$0")/lib.sh"

own_cluster --nodes 2 --tccl-conf Timeout=60s
tccld() { # SIGNAL NODE
    kill -"$1" "$(<"$cluster/pid/tccld@$2")"
}
port=$(sed -nE 's/^n\[1-2\]=.*:([0-9]+)-.*/\1/p' "$cluster/tccl.conf")
peers() { # [unread]: addresses connected to n1's tccld; those of whom it has not read all
    awk -v port=":$(printf '%04X' "$port")" -v unread="${1:-}" '$4 == "01" && $2 ~ port "$" && (!unread || $5 !~ /:00000000$/) { print $3 }' \
        /proc/net/tcp | sort
}
quiet() { [ -z "$(peers)" ]; }
unread() { # has somebody sent n1's tccld what it has not read, since it was stopped?
    [ -n "$(comm -13 "$work/before" <(peers unread))" ]
}
told() { # NODE STATE
    grep -qs "^[^ ]* $1 .* TCCL_STATE=$2\$" "$work"/seen/*
}

# A step of both nodes, whose tasks go on until $work/go is there: n2's tccld dies when n1 has its ring. Sets step.
lose_plan() { # MODE
    rm -f "$work"/seen/* "$work/go"
    eventually "the end of what was said before" quiet
    tccld STOP n1
    peers >"$work/before"
    user srun -N2 --gpus-per-node=4 --ntasks-per-node=1 "--tccl=$1" \
        sh -c "$work/show; until [ -e $work/go ]; do sleep 0.1; done" 2>"$work/err" &
    step=$!
    eventually "what n2 has, at n1" unread
    tccld STOP n2
    tccld CONT n1
    eventually "plan on n1" told n1 '[a-z]*'
    told n1 planned || fail "n1 has no ring: $(cat "$work"/seen/* "$work/err")"
    tccld KILL n2
}

# With require, the step ends on both nodes, although n1's tasks would go on.
required() {
    lose_plan require
    (eventually "end of the step" eval "! kill -0 $step 2>/dev/null") || { touch "$work/go"; exit 1; }
    ! wait "$step" || fail "srun ended with 0"
    collect
    cat "$work/err"
    equal "tasks that started" "$(tasks)" 1
    matches "what is said" "$(grep 'tccl: no ring' "$work/err")" 'tccl: no ring: n2: tccld*'
    equal "reasons" "$(grep -c 'tccl: no ring' "$work/err")" 1
    mini start-tccld n2
    nodes_are_up
}

partial() {
    wait "$step"
    collect
    says 'tccl: *ring* of 2 nodes, 8 GPUs: *'
    recorded "$(job_of)" 0 state planned
    recorded "$(job_of)" 0 reason 'n2: its tccld died *'
}

required
echo "--- without require"
lose_plan on
eventually "no ring on n2" told n2 failed
mini start-tccld n2
touch "$work/go"
partial

echo "--- the step ends first"
for try in {1..5}; do
    lose_plan on
    eventually "no ring on n2" told n2 failed
    begun=${EPOCHREALTIME/[.,]/}
    touch "$work/go"
    mini start-tccld n2
    [ $((${EPOCHREALTIME/[.,]/} - begun)) -lt 900000 ] || { wait "$step"; continue; }
    partial
    exit
done
echo "not shown: this machine took a second and more to start a tccld"
