#!/bin/bash
# P2P between the GPUs that the chain joins so, and no others: A to B and B to C by P2P leave A to C, which sends and receives
# reach, as it is with NCCL alone. With NCCL 2.22 to 2.30.4, with a graph file, too.
# level: all
. "$(dirname "${BASH_SOURCE[0]}")/shim.sh"
case ${TCCL_NCCL:-} in *2.21.*|*2.30.7|*2.31.*|*2.32.*) echo "skipped: NCCL $TCCL_NCCL knows no ways between single GPUs"; exit 77 ;; esac

# "RANK RANK TRANSPORT" for each pair that an all-to-all connects, or the ring before it.
pairs() { # FOLDER
    sed -nE 's/.* : ([0-9]+)\[[^]]*\] -> ([0-9]+)\[[^]]*\].* via (P2P|SHM|NET)[/ ].*/\1 \2 \3/p' "$1"/*.log | sort -u
}

channels() { # RINGS
    python3 -c 'import json, sys; print(*[len(comm["channels"]) for comm in json.load(open(sys.argv[1]))["comms"]])' "$1"
}

# The transports of all pairs are NCCL's own, but for those of the chain's edges, which are given: "0 1 P2P" for both directions.
pairs_of() { # WHAT MODEL GPUS CHAIN [EDGE]...
    step "$1: $4"
    make_plans "$2:$3=$4" ${more[@]+"${more[@]}"}
    run_planned "$2" --gpus "$3" --nodes $((1 + ${#more[@]})) --log "$work/with" -- --collective all-to-all:1048576
    as_planned
    no_warning
    said "TCCL INFO communicator .*; (graph file, )?topology file$" $((1 + ${#more[@]}))
    said "by P2P in place of host memory" 0
    run_ring "$work/alone" "$2" --gpus "$3" --nodes $((1 + ${#more[@]})) --preload - --log "$work/without" -- --collective all-to-all:1048576
    pairs "$work/without" >"$work/wanted"
    for edge in "${@:5}"; do
        read -r one other kind <<<"$edge"
        sed -i -E "s/^($one $other|$other $one) .*/\1 $kind/" "$work/wanted"
    done
    pairs "$work/with" >"$work/got"
    diff "$work/wanted" "$work/got" || fail "$what: pairs are not as wanted (<), but >"
    [ "$(channels "$work/rings")" = "$(channels "$work/alone")" ] || fail "$what: $(channels "$work/rings") channels, not $(channels "$work/alone")"
    rm -r "$work/with" "$work/without"
}

# NCCL 2.22 takes P2P between any two GPUs at AMD's CPUs, so that all its pairs are what the file says of the CPU.
machine=amd-4gpu
case ${TCCL_NCCL:-} in 2.22*) machine=intel-4gpu ;; esac

more=() # chains of other nodes
pairs_of "root ports" $machine 0-3 "0 -w> 1 -w> 2 -m0> 3 -m1> 0" "0 1 P2P" "1 2 P2P"

# 0 and 1 are below one switch, as 4 and 5 are: they stay direct, though the chain does not join them. (NCCL alone takes the NICs of
# switches between 0 and 5, which are away from GPUs in the file: see islands.c.)
pairs_of "switches" dual-8gpu 0,1,2,4,5 "0 -w> 4 -w> 1 -w> 5 -m0> 2 -m1> 0" "0 3 P2P" "1 3 P2P" "1 4 P2P" "0 2 SHM" "0 4 SHM"

# Ranks of the second node are 4 to 7.
more=("$machine:0-3=mlx5_0 -g> 3 -w> 2 -w> 1 -m0> 0 -m3> mlx5_0")
pairs_of "two nodes, the NIC near one of three" $machine 0-3 "mlx5_0 -g> 3 -w> 1 -w> 0 -m1> 2 -m0> mlx5_0" "1 3 P2P" "0 1 P2P" "6 7 P2P" "5 6 P2P"
