#!/bin/bash
# A node whose Prolog takes its time: the step has its ring where Slurm holds the job for it (PrologFlags=Alloc),
# where nodes arrive far apart (NoHold), and where the Prolog runs with the first step only: the others wait for
# the late one. Where its tccld is gone since, no node waits: all run without a ring, and say so.
# cluster: own
# level: all
. "$(dirname "$0")/lib.sh"

late_cluster() { # PROLOGFLAGS
    echo "--- PrologFlags=$1"
    own_cluster --nodes 2 --slurm-conf "PrologFlags=$1"
    hold n2
}

late_step() {
    late_show srun -N2 --gpus-per-node=4 --ntasks-per-node=2 --tccl=on "$work/show"
    equal "exit status" "$status" 0
    equal "tasks" "$(tasks)" 4
    nodes_are_up
}

for flags in Alloc Alloc,NoHold Serial; do
    late_cluster "$flags"
    late_step
    has_ring 4
    recorded "$(job_of)" 0 state planned
done
echo "--- its tccld has gone since"
late_cluster Alloc,NoHold
sed -i "1a kill \$(cat $cluster/pid/tccld@n2)" "$cluster/nodes/n2/prolog"
late_step
no_ring 4 '*n2*'
recorded "$(job_of)" 0 state failed
recorded "$(job_of)" 0 reason '*n2*'
