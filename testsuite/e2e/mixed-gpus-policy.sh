#!/bin/bash
# Policies by the model of GPUs, in a step over nodes with different ones: where one node's GPUs decide
# against a ring, the others hear it from there; the first node's rule gives MinGain and Environment.
# cluster: own
# level: all
. "$(dirname "$0")/lib.sh"

model=$(mktemp --tmpdir tccl-a100-XXXXXX.json)
trap 'rm -f "$model"' EXIT
sed 's/Tesla V100-PCIE-32GB/NVIDIA A100-PCIE-40GB/' "$models/amd-4gpu.json" >"$model"
own_cluster --nodes 2 --model amd-4gpu --model "$model"
rm -f "$model"
cp "$cluster/tccl.conf" "$cluster/tccl.conf.before"
sed -i 's/LD_PRELOAD)=/LD_PRELOAD|SITE_[A-Z])=/' "$work/show"
step="-N2 --gpus-per-node=4 --ntasks-per-node=1"

policies() { # tccl.conf with these, from stdin
    cat "$cluster/tccl.conf.before" - >"$cluster/tccl.conf.new"
    mv "$cluster/tccl.conf.new" "$cluster/tccl.conf"
}

on_node() { # NODE NAME: the value there
    sed -nE "s/^[^ ]+ $1 [0-9]+ $2=//p" "$work/out"
}

# Only the node with A100 is to have a ring: it hears from the other why not.
policies <<CONF
[policy new]
GpuTypes=a100
Default=on
CONF
srun_show $step
equal "exit status" "$status" 0
equal "tasks" "$(tasks)" 2
equal "state on n1" "$(on_node n1 TCCL_STATE)" ""
equal "state on n2" "$(on_node n2 TCCL_STATE)" failed
equal "reason on n2" "$(on_node n2 TCCL_REASON)" "n1: policy: no ring with this node's GPUs"
none_has TCCL_PLAN
recorded "$(job_of)" 0 state failed
srun_show -w n2 -N1 --gpus-per-node=4 --ntasks-per-node=1
has_ring 1
srun_show -w n1 -N1 --gpus-per-node=4 --ntasks-per-node=1
none_has TCCL_STATE
srun_show $step --tccl=on
has_ring 2

# The other way round: the first node speaks.
policies <<CONF
[policy new]
GpuTypes=a100
Forbid=yes
[policy old]
GpuTypes=v100
Default=on
CONF
srun_show $step
says "tccl: no ring: n2: policy 'new': no ring with this node's GPUs (NCCL's own choice is used)"
equal "state on n1" "$(on_node n1 TCCL_STATE)" failed
equal "state on n2" "$(on_node n2 TCCL_STATE)" ""
srun_show $step --tccl=require
[ "$status" != 0 ] || fail "the step succeeds"
equal "tasks" "$(tasks)" 0
matches "what is said" "$(cat "$work/err")" "*tccl: no ring: n2: policy 'new' forbids rings (the step ends*"

# A rule for each: one ring, the first node's variables on both.
policies <<CONF
[policy new]
GpuTypes=a100
Default=on
MinGain=90x
Environment=SITE_A=new
[policy old]
GpuTypes=v100
Default=on
Environment=SITE_A=old
Environment=SITE_B=old
CONF
srun_show $step
has_ring 2
all_have SITE_A old
all_have SITE_B old
recorded "$(job_of)" 0 policy old

# A ring is required for the GPUs of the second node only, and can't be had.
mv "$cluster/nodes/n1/cache" "$cluster/nodes/n1/no-cache"
policies <<CONF
[policy new]
GpuTypes=a100
Default=require
[policy rest]
Default=on
CONF
ends() { # REASON: the step does, on both nodes, and says so once
    srun_show $step
    [ "$status" != 0 ] || fail "the step succeeds"
    says "tccl: no ring: $1 (the step ends, because a ring is required)"
}
ends "n1: no profile of this machine *"
mv "$cluster/nodes/n1/no-cache" "$cluster/nodes/n1/cache"
echo "--- a step without GPUs has nobody who could require a ring by them, and waits for none"
wait_long
sed -i 's/^AliveTimeout=.*/AliveTimeout=60s/' "$cluster/tccl.conf" # the longest: one that waits does so twice
begun=$SECONDS
srun_show -N2 --ntasks-per-node=1 --tccl=on
equal "exit status" "$status" 0
[ $((SECONDS - begun)) -lt 110 ] || fail "it has waited for $((SECONDS - begun)) s"
wait_long
echo "--- the second node's tccld is dead, so the first one doesn't know what is required there"
mini stop-tccld n2
ends "n2: *tccld*"
echo "--- both nodes' rules require one"
sed -i 's/^Default=on$/Default=require/' "$cluster/tccl.conf"
ends "n2: *tccld*"
mini start-tccld n2

# The models of a node can't be read: no rule on them matches, and others do.
rm "$cluster/nodes/n2/machine.json"
policies <<CONF
[policy new]
GpuTypes=a100
Default=off
[policy rest]
Default=on
CONF
srun_show -w n2 -N1 --gpus-per-node=4 --ntasks-per-node=1
no_ring 1 "n2: no description of this machine at *"
recorded "$(job_of)" 0 policy rest
