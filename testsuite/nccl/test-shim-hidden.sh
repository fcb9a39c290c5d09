#!/bin/bash
# Tasks that see only their own GPUs (srun --gpus-per-task with ConstrainDevices), each of which is number 0 to NVML there:
# chains through host memory are built, by a topology file or, from NCCL 2.30.3 on, by a graph file that names ranks. P2P and
# NVLink, and graph files with older ones, are left alone.
# level: all
. "$(dirname "${BASH_SOURCE[0]}")/shim.sh"

alone() { # MODEL REASON OPTION...
    as_alone "$1" --hidden "${@:3}"
    said "WARN communicator .* NCCL's own choice: $2" 1
}

step "a topology file"
make_plans "intel-4gpu:0-3=0 -m0> 2 -m2> 1 -m0> 3 -m2> 0"
run_planned intel-4gpu --gpus 0-3 --hidden
as_planned
said "communicator .* of 4 ranks, 4 here: .* topology file$" 1

step "P2P"
make_plans "intel-4gpu:0-3=0 -w> 2 -m2> 1 -w> 3 -m0> 0"
alone intel-4gpu "ranks see only their own GPUs, and the ring has P2P between them" --gpus 0-3

step "NVLink"
make_plans "intel-4gpu:0,2=0 -m2> 2 -m0> 0"
alone intel-4gpu "ranks see only their own GPUs, which may be joined by NVLink" --gpus 0,2 --add "nvlink 0 2"

step "a graph file, which does not know ranks"
ends=("intel-4gpu:0,1=mlx5_0 -m0> 1 -m0> 0 -m0> mlx5_0" "dual-8gpu:0,1=mlx5_0 -m0> 1 -m0> 0 -g> mlx5_1")
nodes=(intel-4gpu --gpus 0,1 --node "$machines/dual-8gpu.json:0,1")
make_plans "${ends[@]}"
run_planned "${nodes[@]}" --hidden
said "NCCL's own choice: ranks see only their own GPUs, which NCCL can tell apart from 2.30.3 on"

step "several rings, which need a graph file"
set="intel-4gpu:0-3=0 -m0> 2 -m2> 1 -m0> 3 -m2> 0 | 0 -m0> 3 -m0> 2 -m2> 1 -m2> 0"
make_plans "$set"
alone intel-4gpu "ranks see only their own GPUs, which NCCL can tell apart from 2.30.3 on" --gpus 0-3

new=$("$here/get-nccl" --built 2.30.7 2>/dev/null) || { echo "left out: a graph file with ranks (get-nccl 2.30.7)"; exit 0; }

step "a graph file with ranks"
make_plans "${ends[@]}"
run_planned "${nodes[@]}" --hidden --nccl "$new"
as_planned
said "communicator .* graph file"

step "several rings, with ranks"
make_plans "$set"
run_planned intel-4gpu --gpus 0-3 --hidden --nccl "$new"
as_planned
said "communicator .*: built as planned" 1
