#!/bin/bash
# --tccl=require: a step that can't have a ring fails with the reason, and drains no node; one that
# can have it runs.
# cluster: mixed
# level: quick
. "$(dirname "$0")/lib.sh"

srun_show -N2 --gpus-per-node=4 --ntasks-per-node=2 --tccl=require
equal "exit status" "$status" 0
applied 4
mini stop-tccld n2
at_end+=("mini start-tccld n2" wait_long)
wait_little
srun_show -w n1,n2 -N2 --gpus-per-node=4 --ntasks-per-node=2 --tccl=require
[ "$status" != 0 ] || fail "srun ended with 0"
equal "tasks" "$(tasks)" 0
grep -q 'tccl: ' "$work/err" || fail "no reason was said"
nodes_are_up
cat >"$work/job" <<JOB
#!/bin/bash
srun --ntasks-per-node=1 --tccl=require $work/show || echo step failed
JOB
batch -w n1,n2 -N2 --gpus-per-node=4 "$work/job"
grep -q '^step failed' "$work/batch" || fail "the step in the batch job did not fail"
nodes_are_up
