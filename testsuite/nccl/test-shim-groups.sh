#!/bin/bash
# The groups of one job, all at once, get chains that were chosen jointly: which NIC and which edges
# NCCL has built for each, in the layouts of Megatron, DeepSpeed, FSDP and MoE. What the model says
# that they reach together is nowhere below NCCL's own.
# level: all
. "$(dirname "${BASH_SOURCE[0]}")/tccld.sh"

# Ranks of groups over two nodes of N GPUs, each with these GPUs of both; or of each node's own.
across() { # N GPUS...
    local n=$1 gpus gpu
    shift
    for gpus; do
        printf -- '--subset\n%s' "$gpus"
        for gpu in ${gpus//,/ }; do printf ',%d' $((gpu + n)); done
        echo
    done
}
within() { # GPUS...
    printf -- '--subset\n%s\n' "$@"
}

groups() { # WHAT MODEL NODES LEAST OPTION...
    local what=$1 model=$2 nodes=$3 least=$4 i list=()
    shift 4
    step "$model, $what"
    for ((i = 0; i < nodes; i++)); do list+=("$model"); done
    joined_in_time "${list[@]}" -- "$model" --nodes "$nodes" -- "$@"
    "$here/rate-groups" "$machines/$model.json" "$least" "$work/rings" || { show_log; fail "$what"; }
}

each=$(across 8 0 1 2 3 4 5 6 7)
groups "Megatron TP 8, FSDP hybrid shard: replicas of each GPU" epyc-8gpu 2 10.5 $each
groups "Megatron TP 4, MoE EP 4: data" epyc-8gpu 2 15 $(across 8 0,4 1,5 2,6 3,7)
groups "DeepSpeed ZeRO hpZ 2, Megatron TP 2" amd-4gpu 1 10.3 $(within 0,3 1,2)
groups "MoE EP 2: data" amd-4gpu 2 6 $(across 4 0,2 1,3)
# As a whole the step is left to NCCL, whose own rings are faster than a single one.
TCCL_CONF_LINES=MaxRings=1 groups "Megatron TP 4 without a ring of all: data" dual-8gpu 2 8.9 $(across 8 0,4 1,5 2,6 3,7)
grep -q "^ring no$" "${plans[0]}" || fail "the step has a ring of its own: this shows nothing"
