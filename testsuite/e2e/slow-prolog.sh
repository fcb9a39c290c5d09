#!/bin/bash
# A node whose Prolog takes 5 s. Where Slurm holds the job for it (PrologFlags=Alloc) the ring is
# applied; where nodes arrive 5 s apart (NoHold) no node waits so long: all run without, and say so.
# cluster: own
. "$(dirname "$0")/lib.sh"

slow_step() { # PROLOGFLAGS
    own_cluster --nodes 2 --slurm-conf "PrologFlags=$1"
    printf '#!/bin/sh\nsleep 5\n' >"$cluster/nodes/n2/prolog"
    chmod 755 "$cluster/nodes/n2/prolog"
    srun_show -N2 --gpus-per-node=4 --ntasks-per-node=2 --tccl=on
    equal "exit status" "$status" 0
    equal "tasks" "$(tasks)" 4
    nodes_are_up
}
slow_step Alloc
applied 4
slow_step Alloc,NoHold
fallback 4 '*n2*'
recorded "$(job_of)" 0 state fallback
recorded "$(job_of)" 0 reason '*n2*'
