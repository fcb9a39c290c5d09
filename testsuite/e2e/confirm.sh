#!/bin/bash
# What a step's own processes say of the ring that was built comes to tcclacct, from one node and from
# several: yes if all nodes said so, and what differs on any of them. Who is killed, or whose
# tccld has gone, makes it unknown; a step that says nothing has not used its ring. Nobody speaks for
# another user's step.
# cluster: mixed
# level: quick
. "$(dirname "$0")/lib.sh"

cp "$here/ask.py" "$work/ask.py"
chmod 644 "$work/ask.py"

# The task of the first node, the second, … confirms, as the shim would; "-": it says nothing. Where lowest is set, its
# numbers are the lowest ranks of the nodes.
say() { # NODE-LIST VERDICT[=TEXT]...
    local list=$1 node=0 word ranks=(${lowest:-})
    shift
    rm -f "$work"/message.*
    for word in "$@"; do
        [ "$word" = - ] || printf '%s\n' "verdict=${word%%=*}" "text=$([[ $word != *=* ]] || echo "${word#*=}")" ranks=8 gpus=4 whole=yes ${ranks[node]:+lowest=${ranks[node]}} >"$work/message.$node"
        node=$((node + 1))
    done
    cat >"$work/task" <<TASK
#!/bin/sh
[ ! -e $work/message.\$SLURM_NODEID ] || xargs -d '\n' -a $work/message.\$SLURM_NODEID python3 $work/ask.py confirm >>$work/seen/answers
$work/show
touch $work/seen/said.\$SLURM_NODEID
[ ! -e $work/hold ] || until [ -e $work/go ]; do sleep 0.1; done
TASK
    chmod 755 "$work/task"
    user_show srun -w "$list" --ntasks-per-node=1 --gpus-per-node=4 --tccl=on "$work/task"
    equal "answers" "$(sort -u "$work/seen/answers")" "tccl-ok 1; end"
    rm -f "$work/seen/answers"
    collect
    job=$(job_of)
}

say n1 applied
has_ring 1
recorded "$job" 0 built yes
recorded "$job" 0 state planned
equal "tcclacct" "$(user tcclacct -nP -j "$job" -o state,built,builtreason)" "planned|yes|"

say n1,n2,n3,n4 applied applied applied applied
recorded "$job" 0 built yes
recorded "$job" 0 built_reason ""

say n1,n2 applied "differs=edge 2 is P2P, planned through memory 1"
recorded "$job" 0 built no
recorded "$job" 0 built_reason "n2: edge 2 is P2P, planned through memory 1 (1 of 2 nodes)"
recorded "$job" 0 state planned
equal "tcclacct -s no" "$(user tcclacct -nP -j "$job" -s no -o built)" no

say n1,n2,n3 applied applied "not used=set_mempolicy is forbidden"
recorded "$job" 0 built_reason "n3: set_mempolicy is forbidden (1 of 3 nodes left the plan alone)"
recorded "$job" 0 built no

lowest="8 16 0" say n1,n2,n3 applied applied applied # it begins at another node
recorded "$job" 0 built yes
lowest="8 0 16" say n1,n2,n3 applied applied applied
recorded "$job" 0 built no
recorded "$job" 0 built_reason "NCCL has the nodes in another order, that of their lowest ranks"

say n1,n2 "unknown=NCCL's log can't be read" applied
recorded "$job" 0 built unknown
recorded "$job" 0 built_reason "n1: NCCL's log can't be read (1 of 2 nodes)"

say n1,n2,n3 applied begun applied # ended before it was known
recorded "$job" 0 built unknown
recorded "$job" 0 built_reason "n2: its processes ended before it was known what NCCL has built (1 of 3 nodes)"

echo "--- the tccld of a node goes before it has said anything"
all_said() {
    [ "$(find "$work/seen" -name 'said.*' | wc -l)" = "$1" ]
}
without_n3() { # VERDICT...: of n1, n2 and n4
    rm -f "$work/go" "$work"/seen/*
    touch "$work/hold"
    (eventually "all nodes have spoken" all_said 4; mini stop-tccld n3; touch "$work/go") &
    say n1,n2,n3,n4 "$1" "$2" - "$3"
    wait $!
    rm -f "$work/hold"
    mini start-tccld n3
}
at_end+=("touch $work/go")
without_n3 applied applied applied
recorded "$job" 0 built unknown
recorded "$job" 0 built_reason "n3 has not said what was built (1 of 4 nodes)"
without_n3 applied "differs=no P2P" "differs=another order"
recorded "$job" 0 built no
recorded "$job" 0 built_reason "n2: no P2P (2 of 4 nodes)"

rm -f "$work/go"

echo "--- nobody says anything"
srun_show -w n1,n2 --ntasks-per-node=1 --gpus-per-node=4 --tccl=on
job=$(job_of)
recorded "$job" 0 built "no call"
recorded "$job" 0 state planned

# As another user, while the step runs.
user srun -w n1 -N1 --gpus-per-node=4 --tccl=on sh -c "cp \$TCCL_PLAN $work/plan; chmod 644 $work/plan; echo \$SLURM_JOB_ID >$work/id; timeout 600 sh -c 'until [ -e $work/go ]; do sleep 0.1; done'" &
step=$!
eventually "the step has its plan" test -s "$work/id"
for message in "confirm verdict=differs text=lie ranks=4 gpus=4 whole=yes" "chain gpus=0000:01:00.0 closed=yes"; do
    matches "answer to another user" "$(PATH=/usr/bin:/bin TCCL_PLAN=$work/plan setpriv --reuid daemon --regid daemon --clear-groups \
        python3 "$work/ask.py" $message)" 'tccl-error 1; text *has no step*'
done
two=$(TCCL_PLAN=$work/plan python3 "$work/ask.py" --plan gpus | cut -d ' ' -f 1,2)
matches "a chain for the user" "$(PATH=/usr/bin:/bin TCCL_PLAN=$work/plan setpriv --reuid nobody --regid nogroup --clear-groups \
    python3 "$work/ask.py" chain "gpus=$two" closed=yes)" 'tccl-chain 1; state *'
touch "$work/go"
wait $step
recorded "$(cat "$work/id")" 0 built "no call"
