#!/bin/bash
# A tccld that hangs (SIGSTOP): steps on its node wait for their deadline and no longer, run without a
# ring on all nodes, and say why; with require they fail. When it goes on, it has left nothing behind.
# cluster: mixed
# level: all
. "$(dirname "$0")/lib.sh"

signal() { # SIGNAL NODE
    kill -"$1" "$(cat "$cluster/nodes/$2/tccld.sock.lock")"
}
plans() {
    find "$cluster/nodes/n2/run" -name plan
}
no_plans() { [ -z "$(plans)" ]; }

at_end+=("signal CONT n2" wait_long)
signal STOP n2
wait_little
srun_show -w n2 -N1 --gpus-per-node=4 --ntasks-per-node=1 --tccl=on
equal "exit status" "$status" 0
fallback 1 'n2: tccld gave no answer within * ms'
says 'tccl: no ring: n2: tccld gave no answer within * ms*'
alone=$(job_of)
srun_show -w n1,n2 -N2 --gpus-per-node=4 --ntasks-per-node=1 --tccl=on
equal "exit status" "$status" 0
equal "tasks" "$(tasks)" 2
all_have TCCL_STATE fallback
none_has TCCL_PLAN
says 'tccl: no ring: *'
both=$(job_of)
srun_show -w n2 -N1 --gpus-per-node=4 --ntasks-per-node=1 --tccl=require
[ "$status" != 0 ] || fail "srun ended with 0"
equal "tasks" "$(tasks)" 0
nodes_are_up
signal CONT n2
wait_long
recorded "$alone" 0 state fallback
recorded "$both" 0 state fallback
eventually "plan files gone" no_plans
srun_show -w n1,n2 -N2 --gpus-per-node=4 --ntasks-per-node=1 --tccl=on
applied 2
