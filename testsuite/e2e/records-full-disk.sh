#!/bin/bash
# The disk for the records is full: steps run with their ring, nothing hangs, and once there is room
# again the records of that time are there too.
# cluster: own
# level: all
. "$(dirname "$0")/lib.sh"

own_cluster --nodes 2
mini stop-tccld n1
mount -t tmpfs -o size=256k,mode=700,uid=$(id -u "$tccld_user") tmpfs "$cluster/nodes/n1/state"
mini start-tccld n1
srun_show -N2 --gpus-per-node=4 --ntasks-per-node=1 --tccl=on
has_ring 2
first=$(job_of)
recorded "$first" 0 state planned
dd if=/dev/zero of="$cluster/nodes/n1/state/ballast" bs=4k status=none || true
unkept=()
for round in 1 2 3; do
    srun_show -N2 --gpus-per-node=4 --ntasks-per-node=1 --tccl=on
    equal "exit status" "$status" 0
    has_ring 2
    unkept+=("$(job_of)")
done
recorded "$first" 0 state planned
eventually "tccld says that the disk is full" eval 'grep -iE "full|no space" "$cluster"/log/tccld@n1*'
rm "$cluster/nodes/n1/state/ballast"
for job in "${unkept[@]}"; do recorded "$job" 0 state planned; done
# As much again: what SQLite writes ahead takes no more room than the records do.
for round in 1 2 3 4; do
    srun_show -N2 --gpus-per-node=4 --ntasks-per-node=1 --tccl=on
    has_ring 2
    recorded "$(job_of)" 0 state planned
done
