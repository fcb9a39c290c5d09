#!/bin/bash
# A node without a profile: the step runs without a ring on all nodes; one line says which node and
# why, from one node only; auto says nothing; the record has it.
# cluster: mixed
# level: quick
. "$(dirname "$0")/lib.sh"

mv "$cluster/nodes/n3/cache" "$cluster/nodes/n3/cache.away"
at_end+=("rm -rf $cluster/nodes/n3/cache; mv $cluster/nodes/n3/cache.away $cluster/nodes/n3/cache")
mkdir "$cluster/nodes/n3/cache"
srun_show -N4 --gpus-per-node=4 --ntasks-per-node=2 --tccl=on
equal "exit status" "$status" 0
no_ring 8 '*n3*profile*'
says 'tccl: no ring: *n3*profile*'
recorded "$(job_of)" 0 state failed
recorded "$(job_of)" 0 reason '*n3*profile*'
srun_show -N4 --gpus-per-node=4 --ntasks-per-node=2 --tccl=auto
no_ring 8 '*n3*profile*'
says_nothing
srun_show -w n1,n2 -N2 --gpus-per-node=4 --ntasks-per-node=2 --tccl=on
has_ring 4
