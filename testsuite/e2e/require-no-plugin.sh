#!/bin/bash
# --tccl=require where the nodes have no plugin: Slurm drops the option, and the step runs. srun, which has the
# plugin, says so at the end, by tccl-check step; nothing is said where a plugin has looked, nor in other modes.
# tccl-check finds such nodes beforehand.
# cluster: mixed
# level: quick
. "$(dirname "$0")/lib.sh"

stack=$cluster/plugstack.conf
cp -a "$stack" "$work/stack"
sed "s|^PlugStackConfig=.*|PlugStackConfig=$work/stack|" "$cluster/slurm.conf" >"$work/slurm.conf"
chmod 644 "$work/slurm.conf" "$work/stack"
at_end+=("cp -a $work/stack $stack")

# From a node that has the plugin.
run() { # SRUN-OPTION...
    user_show env SLURM_CONF="$work/slurm.conf" srun -w n1,n2 -N2 --gpus-per-node=4 --ntasks-per-node=1 "$@" "$work/show"
}
count() { # PATTERN
    grep -c -- "$1" "$work/err" || true
}

echo "--- the nodes have it"
run --tccl=require
equal "exit status" "$status" 0
has_ring 2
equal "complaints" "$(count 'has spoken')" 0
user tccl-check step "$(job_of).0" --node n1 >"$work/step"
matches "the answer" "$(<"$work/step")" "tccl: n1: the plugin has spoken for step $(job_of).0"

echo "--- a step without GPUs has a reason of its own"
user_show env SLURM_CONF="$work/slurm.conf" srun -w n1,n2 -N2 --ntasks-per-node=1 --tccl=require "$work/show"
[ "$status" != 0 ] || fail "srun ended with 0"
equal "tasks" "$(tasks)" 0
says "tccl: no ring: no GPUs in this step (the step ends, because a ring is required)"

echo "--- they don't"
: >"$stack"
sleep 10.5 # what tccld has seen of plugstack.conf counts that long
run --tccl=require
equal "exit status" "$status" 0
equal "tasks" "$(tasks)" 2
equal "rings" "$(carriers TCCL_RING)" 0
equal "complaints" "$(count 'tccl: ')" 1
matches "what is said" "$(grep 'tccl: ' "$work/err")" \
    "*tccl: n1: no plugin has spoken for step $(job_of).0, so it had no ring: $stack does not name spank_tccl.so"
job=$(job_of)
answer=0
user tccl-check step "$job.0" --node n1 --since 5 2>"$work/step" || answer=$?
equal "exit status" "$answer" 1
TCCL=require run
equal "complaints by TCCL=" "$(count 'no plugin has spoken')" 1
run --tccl=on
equal "messages with on" "$(count 'tccl: ')" 0
check n3 --only peers --peers n1,n2
equal "exit status" "$status" 0
item peers warn "n\[1-2\]: Slurm has no plugin there, so it drops --tccl in silence, also require: $stack does not name spank_tccl.so"

echo "--- another user's step, and one that began before this tccld"
answer=0
mini run --as daemon -- tccl-check step "$job.0" --node n1 --since 100000 2>"$work/step" || answer=$?
equal "exit status" "$answer" 3

echo "--- nor a tccld: a plugin would have ended the step"
mini stop-tccld n1
at_end+=("mini start-tccld n1" wait_long)
run --tccl=require
equal "tasks" "$(tasks)" 2
matches "what is said" "$(grep 'tccl: ' "$work/err")" "*tccl: n1: no node has answered for step *refused*"
