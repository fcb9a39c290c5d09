#!/bin/bash
# P2P between the GPUs that the chain joins so, and no others: A to B and B to C by P2P leave A to C, which sends and receives
# reach, as it is with NCCL alone.
# level: quick
. "$(dirname "${BASH_SOURCE[0]}")/shim.sh"

# "RANK RANK TRANSPORT" for each pair that an all-to-all connects, or the ring before it.
pairs() { # FOLDER
    sed -nE 's/.* : ([0-9]+)\[[^]]*\] -> ([0-9]+)\[[^]]*\].* via (P2P|SHM|NET)[/ ].*/\1 \2 \3/p' "$1"/*.log | sort -u
}

# The transports of all pairs are NCCL's own, but for those of the chain's edges, which are given: "0 1 P2P" for both directions.
pairs_of() { # WHAT MODEL GPUS CHAIN [EDGE]...
    step "$1: $4"
    make_plans "$2:$3=$4"
    run_planned "$2" --gpus "$3" --log "$work/with" -- --collective all-to-all:1048576
    as_planned
    no_warning
    run_ring "$work/alone" "$2" --gpus "$3" --preload - --log "$work/without" -- --collective all-to-all:1048576
    pairs "$work/without" >"$work/wanted"
    for edge in "${@:5}"; do
        read -r one other kind <<<"$edge"
        sed -i -E "s/^($one $other|$other $one) .*/\1 $kind/" "$work/wanted"
    done
    pairs "$work/with" >"$work/got"
    diff "$work/wanted" "$work/got" || fail "$what: pairs are not as wanted (<), but >"
    rm -r "$work/with" "$work/without"
}

pairs_of "root ports" amd-4gpu 0-3 "0 -w> 1 -w> 2 -m0> 3 -m1> 0" "0 1 P2P" "1 2 P2P"
