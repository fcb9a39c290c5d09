#!/bin/bash
# Buffers that a program registers, and NCCL's own memory: NCCL builds the planned ring all the same, of P2P and with edges through
# memory. What uses them directly can't run here, so nothing is launched.
# level: all
. "$(dirname "${BASH_SOURCE[0]}")/sets.sh"

for ring in "0 -m0> 1 -w> 3 -m0> 2 -w> 0" "0 -w> 1 -w> 3 -w> 2 -w> 0"; do
    for buffers in registered nccl; do
        step "$buffers: $ring"
        make_plans "dual-8gpu:0-3=$ring"
        run_planned dual-8gpu --gpus 0-3 --launch nothing -- --buffers "$buffers" --collective all-gather:4194304:f32 --collective all-reduce:16777216
        as_planned
        said "TCCL INFO communicator .*: built as planned" 1
        no_warning
    done
done
