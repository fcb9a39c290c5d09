#!/bin/bash
# A node whose Prolog takes 5 s: the step has its ring where Slurm holds the job for it (PrologFlags=Alloc),
# where nodes arrive 5 s apart (NoHold), and where the Prolog runs with the first step only: what the job has
# on the late node is announced before its Prolog script runs. Where its tccld is gone since, no
# node waits so long: all run without a ring, and say so.
# cluster: own
. "$(dirname "$0")/lib.sh"

slow_cluster() { # PROLOGFLAGS PROLOG-COMMAND
    own_cluster --nodes 2 --slurm-conf "PrologFlags=$1"
    printf '#!/bin/sh\n%s\nsleep 5\n' "$2" >"$cluster/nodes/n2/prolog"
    chmod 755 "$cluster/nodes/n2/prolog"
}

slow_step() {
    srun_show -N2 --gpus-per-node=4 --ntasks-per-node=2 --tccl=on
    equal "exit status" "$status" 0
    equal "tasks" "$(tasks)" 4
    nodes_are_up
}

for flags in Alloc Alloc,NoHold Serial; do
    echo "--- PrologFlags=$flags"
    slow_cluster "$flags" :
    slow_step
    applied 4
    recorded "$(job_of)" 0 state applied
done
echo "--- its tccld has gone since"
slow_cluster Alloc,NoHold "kill \$(cat $cluster/pid/tccld@n2)"
slow_step
fallback 4 '*n2*'
recorded "$(job_of)" 0 state fallback
recorded "$(job_of)" 0 reason '*n2*'
