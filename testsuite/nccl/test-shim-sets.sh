#!/bin/bash
# Ring sets as a stock NCCL builds them: each ring edge by edge and NIC by NIC, the same one of each node in each channel, and as
# many channels of each. In cuMem mode, where NCCL connects rings at the first collectives, after which the shim looks, too. All
# models, with an NCCL that reads graph files in less time: test-shim-sets-models.
# level: all
. "$(dirname "${BASH_SOURCE[0]}")/sets.sh"

best amd-4gpu 2
best dual-8gpu 1

# Between these GPUs NCCL's search knows no way that is fast enough: its own ring and tree have one channel, "in simple order". Of a single
# channel of trees it would take one ring.
step "trees for rings where NCCL finds none"
make_plans --rings 2 turin-pex890:0,2,4,6
run_quietly turin-pex890 --gpus 0,2,4,6
built 1

# Out of node 1 by mlx5_0, into node 2 by mlx5_1; the second ring the other way round. Two edges of the sets are shared.
rails=("dual-8gpu:0-5=mlx5_1 -g> 4 -w> 5 -m1> 2 -w> 3 -w> 0 -w> 1 -g> mlx5_0 | mlx5_0 -g> 1 -w> 0 -w> 3 -w> 2 -m1> 5 -w> 4 -g> mlx5_1"
    "dual-8gpu:0-5=mlx5_1 -g> 5 -w> 4 -m0> 0 -w> 1 -w> 2 -w> 3 -m0> mlx5_1 | mlx5_0 -g> 0 -w> 1 -w> 2 -w> 3 -m1> 5 -w> 4 -g> mlx5_1")
step "rings that change rails"
make_plans "${rails[@]}"
run_quietly dual-8gpu --gpus 0-5 --nodes 2
built 2

step "a node without a plan, whose NCCL has two rings, too"
run_quietly dual-8gpu --gpus 0-5 --nodes 2 --plan -
"$here/compare-plan" "$work/rings" "comm 0" "${plans[0]}" "${plans[1]}" || fail "not as planned"

step "a setting that leaves room for some rings only"
make_plans --rings 3 amd-4gpu amd-4gpu
run_quietly amd-4gpu --nodes 2 --set NCCL_MAX_NCHANNELS=2
"$here/compare-plan" "$work/rings" "comm 0" "${plans[@]}" --first 2 || { show_log; fail "not the first rings"; }
# A rank that has the same part in both rings takes them for one, twice: what counts is another rank's word.
said "TCCL WARN communicator .*: built in part: 2 of 3 rings: NCCL has no channels for more" 2

step "each process sees its own GPU as number 0"
make_plans "intel-4gpu=0 -m0> 2 -w> 3 -m2> 1 -w> 0 | 1 -w> 0 -m0> 2 -w> 3 -m2> 1"
run_planned intel-4gpu --own-first
built 1
run_planned intel-4gpu --own-only
built 1

step "one GPU on each node, two NICs"
make_plans "dual-8gpu:0=mlx5_0 -g> 0 -g> mlx5_0 | mlx5_1 -g> 0 -g> mlx5_1" "dual-8gpu:1=mlx5_1 -g> 1 -g> mlx5_1 | mlx5_0 -g> 1 -g> mlx5_0"
run_quietly dual-8gpu --gpus 0 --node "$machines/dual-8gpu.json:1"
built 2

# What no NCCL builds is left alone.
alone() { # WHY CHAINS
    step "left alone: $1"
    make_plans "dual-8gpu:0-3=$2" "dual-8gpu:0-3=$2"
    as_alone dual-8gpu --gpus 0-3 --nodes 2 2> >(grep -v "a kernel launch refused" >&2)
    said "TCCL WARN communicator .*: NCCL's own choice: .*$1" 2
}
alone "two rings need a GPU's buffers in different memories" \
    "mlx5_0 -m0> 0 -w> 1 -m0> 2 -w> 3 -m0> mlx5_0 | mlx5_1 -m1> 2 -w> 3 -m0> 1 -w> 0 -m0> mlx5_1"
alone "can't be made to go through host memory between all GPUs" \
    "mlx5_0 -m0> 0 -w> 1 -m0> 2 -w> 3 -m0> mlx5_0 | mlx5_0 -m0> 0 -w> 2 -m0> 1 -w> 3 -m0> mlx5_0"
alone "can't be made to use GPUDirect as the chain does" \
    "mlx5_0 -g> 0 -w> 1 -m0> 2 -w> 3 -m0> mlx5_1 | mlx5_0 -m0> 1 -w> 0 -m0> 3 -w> 2 -m0> mlx5_1"
