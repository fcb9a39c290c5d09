#!/bin/bash
# The same data with the shim as by NCCL alone, on two nodes: by NCCL's own InfiniBand code and by sockets, with GPUDirect and without, one
# ring and several; where the shim stands aside, the same bits. In cuMem mode.
# level: all
. "$(dirname "${BASH_SOURCE[0]}")/data.sh"

add "$reducing" "4 1000 40000 1000000" "i32 bf16 f32" "sum avg"
add "$copying" "4 1000 40000 1000000" "f16"

nodes() { # WHAT MODEL OPTION...
    local two=(--nodes 2)
    [[ " $* " != *" --node "* ]] || two=()
    step "$1"
    run_planned "$2" "${two[@]}" "${@:3}" -- "${collectives[@]}"
    run_alone "$2" "${two[@]}" "${@:3}" -- "${collectives[@]}"
    right "$work/rings" "$alone"
}

make_plans "epyc-8gpu:0,1=mlx5_0 -m0> 1 -m0> 0 -m0> mlx5_0" "epyc-8gpu:0,1=mlx5_0 -m0> 1 -m0> 0 -m0> mlx5_0"
for protocol in Simple LL LL128; do
    nodes "$protocol" epyc-8gpu --gpus 0,1 --set NCCL_PROTO=$protocol
    as_planned
done
make_plans amd-4gpu amd-4gpu:0 # trees along the ring on one of them
nodes "four GPUs and one" amd-4gpu --gpus 0-3 --node "$machines/amd-4gpu.json:0"
as_planned
make_plans --rings auto amd-4gpu amd-4gpu
nodes "several rings" amd-4gpu
as_planned

step "sockets"
as_alone epyc-8gpu --gpus 0,1 --nodes 2 --set NCCL_IB_DISABLE=1 -- "${collectives[@]}"
right "$work/rings" "$alone" --every-bit
