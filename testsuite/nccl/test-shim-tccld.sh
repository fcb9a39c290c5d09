#!/bin/bash
# The shim and a real tccld on each node: what NCCL built is confirmed and stands in the step's
# record: yes, or no.
# level: quick
. "$(dirname "${BASH_SOURCE[0]}")/tccld.sh"

step "one node"
joined amd-4gpu -- amd-4gpu
said "TCCL INFO"
no_warning
as_planned
built yes

step "two nodes"
joined amd-4gpu:0,1 intel-4gpu:1,2 -- amd-4gpu --gpus 0,1 --node "$machines/intel-4gpu.json:1,2"
no_warning
as_planned
built yes

step "without the shim"
joined amd-4gpu:1,2 -- amd-4gpu --gpus 1,2 --preload -
built "no call"

step "the user wants no P2P and a tree"
joined amd-4gpu:1,2 -- amd-4gpu --gpus 1,2 --set NCCL_ALGO=Tree
said WARN 1
built no
