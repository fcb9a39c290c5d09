#!/bin/bash
# A tccld dies with the plan of its node unread, when the first node has its ring already: the node goes
# without, and when its part of the step ends, the tccld that is there by then, or a moment later, puts "partial"
# on record.
# cluster: own
# level: quick
. "$(dirname "$0")/lib.sh"

own_cluster --nodes 2 --tccl-conf Timeout=60s
tccld() { # SIGNAL NODE
    kill -"$1" "$(<"$cluster/pid/tccld@$2")"
}
port=$(sed -nE 's/^n\[1-2\]=.*:([0-9]+)-.*/\1/p' "$cluster/tccl.conf")
unread() { # has somebody sent n1's tccld what it has not read?
    awk -v port=":$(printf '%04X' "$port")" '$4 == "01" && $2 ~ port "$" && $5 !~ /:00000000$/ { found = 1 } END { exit !found }' \
        /proc/net/tcp
}
told() { # NODE STATE
    grep -qs "^[^ ]* $1 .* TCCL_STATE=$2\$" "$work"/seen/*
}

# With require, the step ends on both nodes, although n1's tasks would go on.
required() {
    rm -f "$work"/seen/* "$work/go"
    tccld STOP n1
    user srun -N2 --gpus-per-node=4 --ntasks-per-node=1 --tccl=require \
        sh -c "$work/show; until [ -e $work/go ]; do sleep 0.1; done" 2>"$work/err" &
    step=$!
    eventually "what n2 has, at n1" unread
    tccld STOP n2
    tccld CONT n1
    eventually "ring on n1" told n1 applied
    tccld KILL n2
    (eventually "end of the step" eval "! kill -0 $step 2>/dev/null") || { touch "$work/go"; exit 1; }
    ! wait "$step" || fail "srun ended with 0"
    collect
    cat "$work/err"
    equal "tasks that started" "$(tasks)" 1
    matches "what is said" "$(grep 'tccl: no ring' "$work/err")" 'tccl: no ring: n2: tccld*'
    mini start-tccld n2
    nodes_are_up
}

# A step of both nodes, where n2's tccld has died; its tasks go on until $work/go is there. Sets step.
lose_plan() {
    rm -f "$work"/seen/* "$work/go"
    tccld STOP n1
    user srun -N2 --gpus-per-node=4 --ntasks-per-node=1 --tccl=on \
        sh -c "$work/show; until [ -e $work/go ]; do sleep 0.1; done" 2>"$work/err" &
    step=$!
    eventually "what n2 has, at n1" unread
    tccld STOP n2
    tccld CONT n1
    eventually "ring on n1" told n1 applied
    tccld KILL n2
    eventually "no ring on n2" told n2 fallback
}

partial() {
    wait "$step"
    collect
    says 'tccl: ring of 2 nodes, 8 GPUs: *'
    recorded "$(job_of)" 0 state partial
    recorded "$(job_of)" 0 reason 'n2: its tccld died *'
}

required
echo "--- without require"
lose_plan
mini start-tccld n2
touch "$work/go"
partial

echo "--- the step ends first"
for try in {1..5}; do
    lose_plan
    begun=${EPOCHREALTIME/[.,]/}
    touch "$work/go"
    mini start-tccld n2
    [ $((${EPOCHREALTIME/[.,]/} - begun)) -lt 900000 ] || { wait "$step"; continue; }
    partial
    exit
done
echo "not shown: this machine took a second and more to start a tccld"
