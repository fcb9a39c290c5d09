#!/bin/bash
# The same data with the shim as by NCCL alone, on one node: rings of each transport, in another order than NCCL's own, several at
# once; tasks that see one GPU each; what the shim leaves alone has the same bits. 4 B to 64 MiB. In cuMem mode, and once in the older one.
# level: all
. "$(dirname "${BASH_SOURCE[0]}")/data.sh"

add "$reducing" "4 1000 40000 1000000" "i32 bf16 f32" "sum max avg"
add "$copying" "4 1000 40000 1000000" "f16"
add "all-reduce" "67108864" "f32"

as_by_nccl() { # WHAT MODEL OPTION...: planned and alone
    step "$1"
    run_planned "${@:2}" -- "${collectives[@]}"
    run_alone "${@:2}" -- "${collectives[@]}"
    right "$work/rings" "$alone"
}

make_plans "amd-4gpu:0,2,3=0 -m1> 3 -m1> 2 -m3> 0"
as_by_nccl "host memory" amd-4gpu --gpus 0,2,3
as_planned
for protocol in LL LL128; do
    as_by_nccl $protocol amd-4gpu --gpus 0,2,3 --set NCCL_PROTO=$protocol
    as_planned
done
make_plans "dual-8gpu:0-3=0 -w> 2 -m0> 1 -w> 3 -m1> 0"
as_by_nccl "P2P and host memory" dual-8gpu --gpus 0-3
as_planned
cumem=off
as_by_nccl "the older mode" dual-8gpu --gpus 0-3
as_planned
cumem=on
as_by_nccl "one process" dual-8gpu --gpus 0-3 --processes 1
as_planned
make_plans --rings auto amd-4gpu
as_by_nccl "several rings" amd-4gpu
said "built as planned" 1 # sends have channels of their own, too
make_plans "intel-4gpu:0-3=0 -m0> 2 -m2> 1 -m0> 3 -m2> 0"
as_by_nccl "tasks that see one GPU each" intel-4gpu --hidden
as_planned

step "left alone"
make_plans "intel-4gpu:0-3=0 -w> 2 -m2> 1 -w> 3 -m0> 0"
as_alone intel-4gpu --hidden -- "${collectives[@]}"
right "$work/rings" "$alone" --every-bit
