#!/bin/bash
# The same data with the shim as by NCCL alone, in communicators of some ranks that work at once, in splits of one, and what is left when a
# rank is gone; and an all-reduce that never ends is given up, steered or not. In cuMem mode.
# level: all
. "$(dirname "${BASH_SOURCE[0]}")/data.sh"

add "$reducing" "4 1000 1000000" "i32 f32" "sum avg"
add "$copying" "4 1000 1000000" "f16"

groups() { # WHAT MODEL OPTION... -- PROBE-OPTION...
    step "$1"
    run_planned "${@:2}" "${collectives[@]}"
    run_alone "${@:2}" "${collectives[@]}"
    right "$work/rings" "$alone"
}

make_plans "dual-8gpu:0-3=0 -m0> 1 -w> 3 -m0> 2 -w> 0"
groups "all GPUs, and groups of them" dual-8gpu --gpus 0-3 -- --subset 0,2 --subset 1,3 --subset 0-3
as_planned
groups "made in one group" dual-8gpu --gpus 0-3 -- --group --comms 2
groups "splits and shrinks" dual-8gpu --gpus 0-3 -- --split 2 --again --shrink 1
as_planned
make_plans "epyc-8gpu:0,1=mlx5_0 -m0> 1 -m0> 0 -m0> mlx5_0" "epyc-8gpu:0,1=mlx5_0 -m0> 1 -m0> 0 -m0> mlx5_0"
groups "two nodes" epyc-8gpu --gpus 0,1 --nodes 2 -- --subset 0,2 --subset 1,3 --split 2
as_planned

# Data were on their way between other ranks meanwhile.
abort() { # MODEL OPTION...
    run_planned "$@" -- --check --subset 1,2 --everywhere --collective all-reduce:1000000:f32 --stuck --abort
    right
    look "$work/rings" 'expect("aborts", {call["result"] for call in answer["calls"] if call["call"] == "abort"}, {"no error"})'
}
step "given up"
abort epyc-8gpu --gpus 0,1 --nodes 2
as_planned
abort epyc-8gpu --gpus 0,1 --nodes 2 --preload -
