#!/bin/bash
# What a step's own process says of the ring that was built comes to tcclacct, from one node and from
# several; of a step that says nothing, that it was not used. Nobody speaks for another user's step.
# cluster: mixed
# level: quick
. "$(dirname "$0")/lib.sh"

cp "$here/ask.py" "$work/ask.py"
chmod 644 "$work/ask.py"

say() { # NODE-LIST VERDICT TEXT [NODE-INDEX]: the tasks (of that node) confirm, as the shim would
    printf '%s\n' "verdict=$2" "text=$3" ranks=8 gpus=4 whole=yes >"$work/message"
    cat >"$work/task" <<TASK
#!/bin/sh
case "${4:-any}" in
any | \$SLURM_NODEID) xargs -d '\n' -a $work/message python3 $work/ask.py confirm >>$work/seen/answers ;;
esac
exec $work/show
TASK
    chmod 755 "$work/task"
    user_show srun -w "$1" --ntasks-per-node=1 --gpus-per-node=4 --tccl=on "$work/task"
    equal "answers" "$(sort -u "$work/seen/answers")" "tccl-ok 1; end"
    rm -f "$work/seen/answers"
    collect
    job=$(job_of)
}

say n1 applied ""
applied 1
recorded "$job" 0 built applied
recorded "$job" 0 state applied
equal "tcclacct" "$(user tcclacct -nP -j "$job" -o state,built,builtreason)" "applied|applied|"

say n1,n2 differs "edge 2 is P2P, planned through memory 1" 1
recorded "$job" 0 built differs
recorded "$job" 0 built_reason "n2: edge 2 is P2P, planned through memory 1"
recorded "$job" 0 state differs
equal "tcclacct -s differs" "$(user tcclacct -nP -j "$job" -s differs -o built)" differs

say n1,n2 unknown "NCCL's log can't be read" # both: node 0's word is taken
recorded "$job" 0 built unknown

srun_show -w n1,n2 --ntasks-per-node=1 --gpus-per-node=4 --tccl=on
job=$(job_of)
recorded "$job" 0 built "not used"
recorded "$job" 0 state applied

# As another user, while the step runs.
user srun -w n1 -N1 --gpus-per-node=4 --tccl=on sh -c "cp \$TCCL_PLAN $work/plan; chmod 644 $work/plan; echo \$SLURM_JOB_ID >$work/id; timeout 600 sh -c 'until [ -e $work/go ]; do sleep 0.1; done'" &
step=$!
at_end+=("touch $work/go")
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
recorded "$(cat "$work/id")" 0 built "not used"
