#!/bin/bash
# Two and four nodes, each with a chain of its own: of one kind and of several, with other heads and
# tails than NCCL's, and edges that it would not use.
# level: all
. "$(dirname "${BASH_SOURCE[0]}")/shim.sh"

step "two nodes of one kind, two chains"
make_plans "dual-8gpu:0-3=mlx5_0 -m0> 2 -m0> 3 -w> 0 -w> 1 -g> mlx5_0" "dual-8gpu:0-3=mlx5_0 -g> 0 -m0> 1 -w> 3 -m0> 2 -m0> mlx5_0"
run_planned dual-8gpu --gpus 0-3 --nodes 2
as_planned

step "nodes of two kinds"
make_plans "amd-4gpu:0,1,3=mlx5_0 -m0> 3 -m1> 1 -w> 0 -m3> mlx5_0" "intel-4gpu:1,2=mlx5_0 -m1> 2 -w> 1 -m0> mlx5_0"
run_planned amd-4gpu --gpus 0,1,3 --node "$machines/intel-4gpu.json:1,2"
as_planned

step "four nodes of two kinds"
make_plans "dual-8gpu:0,1=mlx5_0 -m0> 1 -m0> 0 -g> mlx5_0" "dual-8gpu:2,4=mlx5_1 -g> 4 -w> 2 -m0> mlx5_0" \
    "epyc-8gpu:0,3=mlx5_1 -m0> 3 -w> 0 -m2> mlx5_0" "epyc-8gpu:1,2=mlx5_0 -m2> 1 -m1> 2 -m0> mlx5_1"
run_planned dual-8gpu --gpus 0,1 --node "$machines/dual-8gpu.json:2,4" --node "$machines/epyc-8gpu.json:0,3" \
    --node "$machines/epyc-8gpu.json:1,2"
as_planned

step "one GPU on a node"
make_plans "dual-8gpu:0=mlx5_1 -m0> 0 -m0> mlx5_1" "dual-8gpu:0,1=mlx5_0 -g> 1 -w> 0 -g> mlx5_0"
run_planned dual-8gpu --gpus 0 --node "$machines/dual-8gpu.json:0,1"
as_planned
