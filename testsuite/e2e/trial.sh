#!/bin/bash
# Trial= of a policy: about so many jobs run with NCCL's own choice in place of the ring that they would get, all steps of a job or none,
# with a plan by which they are measured; not the step that asks for a ring. Record, TCCL_REASON and tccl-check policy say so.
# cluster: mixed
# level: all
. "$(dirname "$0")/lib.sh"

cp "$cluster/tccl.conf" "$cluster/tccl.conf.before"
at_end+=("mv $cluster/tccl.conf.before $cluster/tccl.conf")
cat >>"$cluster/tccl.conf" <<CONF
[policy half]
JobNames=half
Trial=50%
Default=on
CONF
cat >"$work/look" <<'LOOK'
#!/bin/bash
# As the task of a step sees its plan.
cp "$TCCL_PLAN" "$1.$SLURM_STEP_ID.$SLURM_NODEID" 2>/dev/null
exit 0
LOOK
chmod +x "$work/look"
cat >"$work/job" <<JOB
#!/bin/bash
srun --ntasks-per-node=1 $work/show
srun --ntasks-per-node=1 --tccl=on $work/show
srun --ntasks-per-node=1 -N1 -n1 $work/show
srun --ntasks-per-node=1 $work/look $work/plan
JOB
chmod 777 "$work"
trials=0 rings=0
for try in {1..14}; do
    rm -f "$work"/plan.*
    batch -J half -w n1,n2 -N2 --gpus-per-node=4 --ntasks-per-node=1 "$work/job"
    has_ring 2 1 # who asks for one has one
    if [ "$(values TCCL_STATE 0)" = planned ]; then
        rings=$((rings + 1))
        has_ring 2 0
        has_ring 1 2
        recorded "$job" 0 reason_class ""
        grep -q ^chain "$work/plan.3.0" || fail "a plan without a ring"
    else
        trials=$((trials + 1))
        for step in 0 2; do
            all_have TCCL_STATE left $step
            none_has TCCL_RING $step
            recorded "$job" $step state left
            recorded "$job" $step reason_class trial
            recorded "$job" $step policy half
            recorded "$job" $step reason "trial: NCCL's own choice in place of a ring of * GB/s, to compare them (Trial=50%)"
        done
        for node in 0 1; do
            equal "plan of node $node" "$(grep -E '^(ring|groups|chain) ' "$work/plan.3.$node" | tr '\n' ' ')" "ring no groups no "
        done
    fi
    [ $((trials > 1 && rings > 1)) = 0 ] || break
done
[ $((trials > 0 && rings > 0)) = 1 ] || fail "$trials trials, $rings rings: by chance that is one of 8,000 runs"
explained=$(admin tccl-check policy --explain --job-name half --gpus 8 --nodes 'n[1-2]')
matches "explanation" "$explained" "*\[policy half\] *holds*ring *yes*Trial *50% of the jobs*"
