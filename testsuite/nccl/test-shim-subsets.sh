#!/bin/bash
# Communicators over some of the step's GPUs get the chain that a real tccld knows for these: groups
# inside a node (tensor parallel), across nodes (data parallel), pairs; several of them at once.
# level: quick
. "$(dirname "${BASH_SOURCE[0]}")/tccld.sh"

# The best ring over these GPUs alone, as tccl-path finds it in the same model.
best() { # NODE...
    make_plans "$@"
}

step "one GPU left out"
joined_in_time amd-4gpu -- amd-4gpu -- --comms 1 --subset 3,0,1
as_planned "comm 0"
best amd-4gpu:0,1,3
as_planned "subset 0"
said "TCCL INFO .* of 3 ranks: NCCL's own choice: NCCL's own choice is as good" 1

step "two groups inside a node, at once"
joined_in_time intel-4gpu -- intel-4gpu -- --comms 1 --subset 0-1 --subset 2-3
best intel-4gpu:0,1
as_planned "subset 0"
best intel-4gpu:2,3
as_planned "subset 1"

step "a split into pairs"
joined_in_time intel-4gpu -- intel-4gpu -- --split 2
best intel-4gpu:0,2
as_planned "split 0"
best intel-4gpu:1,3
as_planned "split 1"

# Each alone would have its best ring; beside each other one of them is left to NCCL, which loses nothing by it.
step "groups across two nodes, at once"
joined_in_time amd-4gpu amd-4gpu -- amd-4gpu --nodes 2 -- --subset 0,3,4,7 --subset 1,2,5,6
as_planned "comm 0"
said "TCCL INFO .* of 4 ranks, 2 here: ring mlx5_0 .*; model, 6\.05 GB/s \(NCCL's own 4\.40\)" 2
said "TCCL INFO .* of 4 ranks: NCCL's own choice: NCCL's own choice is as good" 2
said "built as planned" 4

# Each is a split of the first communicator with all ranks, of which the others have no color.
step "the same groups as PyTorch's new_group makes them"
joined_in_time amd-4gpu amd-4gpu -- amd-4gpu --nodes 2 -- --split-off --subset 0,2,4,6 --subset 1,3,5,7
said "TCCL INFO .* of 4 ranks, 2 here: ring mlx5_0 .*; model, (6\.05|5\.25) GB/s \(NCCL's own 4\.40\)" 4
said "built as planned" 6

step "groups of tasks that see only their own GPUs"
TCCL_HIDDEN=yes joined_in_time amd-4gpu -- amd-4gpu --hidden -- --split-off --subset 0,3 --subset 1,2
said "TCCL INFO .* of 2 ranks, 2 here: ring .*; model, 7\.87 GB/s \(NCCL's own 5\.20\)" 1
said "TCCL INFO .* of 2 ranks: NCCL's own choice: NCCL's own choice is as good" 1 # P2P: 10.40
said "built as planned" 2

step "splits that share their parent's buffers"
joined_in_time amd-4gpu amd-4gpu -- amd-4gpu --nodes 2 -- --init config --share --split 2
as_planned "comm 0"
said "child of communicator .*: NCCL's own choice: it shares its parent's buffers" 8
said "built as planned" 2

step "groups of one GPU on each of two nodes"
joined_in_time amd-4gpu:0,1 amd-4gpu:0,1 -- amd-4gpu --gpus 0,1 --nodes 2 -- --subset 0,2 --subset 1,3
as_planned "comm 0"
said "TCCL INFO .* of 2 ranks: NCCL's own choice: NCCL's own choice is as good" 4

# Both have an edge from rank 0 to rank 1, and NCCL's log does not say of which communicator a line is. The ring of
# three GPUs gains nothing.
step "a group that is left to NCCL is connected before another one of the same rank"
joined_in_time amd-4gpu -- amd-4gpu -- --subset 1,0,3 --subset 1,2
said "communicator .* of 3 ranks: NCCL's own choice: NCCL's own choice is as good" 1
said "built as planned" 2
