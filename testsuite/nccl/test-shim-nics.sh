#!/bin/bash
# Heads and tails on any NIC, with GPUDirect or through host memory; NICs that NCCL numbers otherwise
# because the user has it leave some out.
# level: all
. "$(dirname "${BASH_SOURCE[0]}")/shim.sh"

pair() { # WHAT CHAIN CHAIN OPTION...
    step "$1"
    make_plans "dual-8gpu:0,4=$2" "dual-8gpu:0,4=$3"
    shift 3
    run_planned dual-8gpu --gpus 0,4 --nodes 2 "$@"
}

pair "near NICs, GPUDirect at both ends, or at none" "mlx5_0 -g> 0 -m0> 4 -g> mlx5_1" "mlx5_1 -m1> 4 -m0> 0 -m0> mlx5_0"
as_planned
pair "far NICs, GPUDirect across sockets" "mlx5_1 -g> 0 -w> 4 -g> mlx5_0" "mlx5_0 -g> 4 -w> 0 -g> mlx5_1"
as_planned
pair "one NIC for both ends, one end direct" "mlx5_1 -m1> 0 -m0> 4 -g> mlx5_1" "mlx5_0 -g> 0 -m0> 4 -m0> mlx5_0"
as_planned

# By a setting for one process it could be had, but its other communicators would have that, too.
step "the same with P2P between the ends: a NIC is near both or none"
make_plans "dual-8gpu:0,4=mlx5_1 -m1> 0 -w> 4 -g> mlx5_1" "dual-8gpu:0,4=mlx5_0 -g> 0 -w> 4 -m0> mlx5_0"
as_alone dual-8gpu --gpus 0,4 --nodes 2
said "WARN.*GPUDirect as the chain does at its ends" 2

chains=("mlx5_1 -m0> 0 -w> 4 -m0> mlx5_1" "mlx5_1 -g> 4 -w> 0 -g> mlx5_1")
pair "the user leaves a NIC out: the others have other numbers" "${chains[@]}" --set NCCL_IB_HCA=^mlx5_0
as_planned "comm 0" --nics mlx5_1
pair "the user names NICs in another order" "${chains[@]}" --set NCCL_IB_HCA=mlx5_1,mlx5_0
as_planned
pair "the user names one NIC exactly" "${chains[@]}" --set NCCL_IB_HCA==mlx5_1
as_planned "comm 0" --nics mlx5_1

step "the user leaves out the NIC of the plan"
as_alone dual-8gpu --gpus 0,4 --nodes 2 --set NCCL_IB_HCA=mlx5_0
said "WARN.*mlx5_1"

step "a NIC that is not there"
make_plans "dual-8gpu:0,4=mlx5_7 -m0> 0 -w> 4 -m0> mlx5_7" "dual-8gpu:0,4=mlx5_1 -g> 4 -w> 0 -g> mlx5_1"
run_planned dual-8gpu --gpus 0,4 --nodes 2
plans[0]=-
as_planned
said "node 0: .*WARN.*mlx5_7"
