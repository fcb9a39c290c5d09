#!/bin/bash
# Which GPU is Slurm's number 2? slurmd's list says: File= in any order, several types, a dead GPU taken out. After gres.conf has
# changed there is no ring until slurmd counts by it, too; MIG instances and devices that are not NVIDIA's get none.
# cluster: own
# level: quick
. "$(dirname "$0")/lib.sh"

own_cluster --nodes 2
dev=$cluster/dev
cp "$cluster/slurm.conf" "$work/slurm.conf"
all="NodeName=n2 Name=gpu File=$dev/gpu[0-3]"

# Gres= of n1, and its lines of gres.conf from stdin.
configure() { # GRES
    sed "s/^\(NodeName=n1 .*\)Gres=gpu:4/\1Gres=$1/" "$work/slurm.conf" >"$cluster/slurm.conf.new"
    mv "$cluster/slurm.conf.new" "$cluster/slurm.conf"
    { echo "$all"; cat; } >"$cluster/gres.conf.new"
    mv "$cluster/gres.conf.new" "$cluster/gres.conf"
}

# The GPUs of a node in the ring, by their positions in the machine.
gpus_of() { # NODE
    values TCCL_RING | sed -E "s/.*$1\\[([^]]*)\\].*/\\1/" | tr -s ' ' '\n' | grep -xE '[0-9]+' | sort -nu | paste -sd ,
}

# A step with these options has its ring over just these GPUs of n1, and the first ones of n2.
ring_over() { # GPUS-OF-N1 GPUS-OF-N2 SRUN-OPTION...
    local here=$1 there=$2
    shift 2
    srun_show -N2 --ntasks-per-node=1 --tccl=on "$@"
    has_ring 2
    equal "GPUs of n1" "$(gpus_of n1)" "$here"
    equal "GPUs of n2" "$(gpus_of n2)" "$there"
}

has_none() { # REASON SRUN-OPTION...
    local reason=$1
    shift
    srun_show -N2 --ntasks-per-node=1 --tccl=on "$@"
    no_ring 2 "$reason"
    recorded "$(job_of)" 0 state failed
}

ring_over 0,1 0,1 --gpus-per-node=2

# The file's order: 3, 1, 0, 2.
configure gpu:4 <<<"NodeName=n1 Name=gpu File=$dev/gpu[3,1,0,2]"
has_none "n1: gres.conf or slurm.conf lists other GPUs than when slurmd was started: restart slurmd" --gpus-per-node=2
restart_slurm
ring_over 1,3 0,1 --gpus-per-node=2
ring_over 0,1,3 0,1,2 --gpus-per-node=3

# tccld that is started again knows this slurmd's list, though gres.conf is newer.
touch "$cluster/gres.conf"
mini stop-tccld n1
mini start-tccld n1
ring_over 1,3 0,1 --gpus-per-node=2
mini stop-tccld n1
rm "$cluster/nodes/n1/run/slurm-gpus"
mini start-tccld n1
has_none "n1: gres.conf has changed since slurmd was started: restart slurmd" --gpus-per-node=2

# GPU 1 is dead and was taken out: what comes behind it has other numbers.
configure gpu:3 <<<"NodeName=n1 Name=gpu File=$dev/gpu0,$dev/gpu[2-3]"
restart_slurm
ring_over 0,2 0,1 --gpus-per-node=2
ring_over 0,2,3 0,1,2 --gpus-per-node=3

# Several types; the names of the files say nothing, their device numbers do.
mknod -m 666 "$dev/other0" c 195 3
mknod -m 666 "$dev/other3" c 195 0
all="NodeName=n2 Name=gpu Type=a File=$dev/gpu[0-3]"
sed -i 's/^\(NodeName=n2 .*\)Gres=gpu:4/\1Gres=gpu:a:4/' "$work/slurm.conf"
configure gpu:b:2,gpu:a:2 <<CONF
NodeName=n1 Name=gpu Type=a File=$dev/other0,$dev/gpu1
NodeName=n1 Name=gpu Type=b File=$dev/gpu2,$dev/other3
CONF
restart_slurm
ring_over 1,3 0,1 --gres=gpu:a:2
srun_show -w n1 -N1 --ntasks-per-node=1 --gres=gpu:b:2 --tccl=on
equal tasks "$(tasks)" 1
matches "slurmd's list" "$(sed -n "s/^gpu 0 //p" "$cluster/nodes/n1/run/slurm-gpus")" "whole 2 - $dev/gpu2" # by types, as slurm.conf has them

# A GPU that was split into instances after its machine was measured, and what is no GPU of NVIDIA's.
mkdir "$dev/nvidia-caps"
mknod -m 666 "$dev/nvidia-caps/nvidia-cap30" c 195 30
mknod -m 666 "$dev/null" c 1 3
all="NodeName=n2 Name=gpu File=$dev/gpu[0-3]"
sed -i 's/Gres=gpu:a:4/Gres=gpu:4/' "$work/slurm.conf"
configure gpu:4 <<CONF
NodeName=n1 Name=gpu File=$dev/gpu[0-1]
NodeName=n1 Name=gpu MultipleFiles=$dev/gpu2,$dev/nvidia-caps/nvidia-cap30
NodeName=n1 Name=gpu File=$dev/null
CONF
restart_slurm
ring_over 0,1 0,1 --gpus-per-node=2
has_none "n1: GPU 2 ($dev/gpu2) has MIG instances: rings are over whole GPUs" --gpus-per-node=3
srun_show -w n1 -N1 --ntasks-per-node=1 --gpus-per-node=4 --tccl=on
no_ring 1 "n1: GPU [23] *"

# A device that has another number now.
rm "$dev/gpu1"
mknod -m 666 "$dev/gpu1" c 195 3
ring_over 0,3 0,3 --gpus-per-node=2 # a device of both nodes
