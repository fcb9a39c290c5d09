#!/bin/bash
# [policy]: steps get a ring without any flag where the minimums and the partition fit; elsewhere
# nothing is set; the user can always say off.
# cluster: mixed
# level: quick
. "$(dirname "$0")/lib.sh"

cp "$cluster/tccl.conf" "$cluster/tccl.conf.before"
at_end+=("mv $cluster/tccl.conf.before $cluster/tccl.conf")
cat >>"$cluster/tccl.conf" <<CONF
[policy]
Default=auto
MinNodes=2
MinGpus=6
Partitions=all
CONF
srun_show -w n1,n2 -N2 --gpus-per-node=4 --ntasks-per-node=1
has_ring 2
says_nothing
recorded "$(job_of)" 0 mode auto
for options in "-w n1 -N1 --gpus-per-node=4" "-w n1,n2 -N2 --gpus-per-node=2" \
    "-p other -w n1,n2 -N2 --gpus-per-node=4" "-w n1,n2 -N2 --gpus-per-node=4 --tccl=off"; do
    srun_show $options --ntasks-per-node=1
    equal "exit status" "$status" 0
    none_has TCCL_RING
    none_has TCCL_PLAN
    says_nothing
done
srun_show -w n1 -N1 --gpus-per-node=4 --ntasks-per-node=1 --tccl=on
has_ring 1
