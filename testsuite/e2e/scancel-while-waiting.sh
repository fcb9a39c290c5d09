#!/bin/bash
# A job that is cancelled while its step waits for a plan ends, and leaves nodes and tccld as they were.
# cluster: own
# level: quick
. "$(dirname "$0")/lib.sh"

own_cluster --nodes 2 --slurm-conf PrologFlags=Alloc,NoHold
printf '#!/bin/sh\nsleep 5\n' >"$cluster/nodes/n2/prolog"
chmod 755 "$cluster/nodes/n2/prolog"
srun_show -N2 --gpus-per-node=4 --ntasks-per-node=2 --tccl=require &
running() { [ -n "$(admin squeue -h -t RUNNING -o %i)" ]; }
eventually "the job" running
sleep 1
user scancel "$(admin squeue -h -o %i)"
wait
eventually "end of the job" no_jobs
rm "$cluster/nodes/n2/prolog"
nodes_are_up
srun_show -N2 --gpus-per-node=4 --ntasks-per-node=2 --tccl=on
has_ring 4
