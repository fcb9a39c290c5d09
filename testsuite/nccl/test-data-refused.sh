#!/bin/bash
# What the rig's kernels can't run is refused, with an error and a line on stderr, and never done wrong: registered buffers that NCCL uses
# directly, windows, PAT. NCCL's own memory, and registered buffers that it copies from all the same, are as any other. In cuMem mode.
# level: all
. "$(dirname "${BASH_SOURCE[0]}")/data.sh"
collectives=(--check --collective all-reduce:1000000:f32 --collective all-gather:1000000:f16 --collective all-to-all:100000)

runs() { # WHAT MODEL OPTION... -- PROBE-OPTION...
    step "$1"
    run_ring "$work/rings" "${@:2}" "${collectives[@]}"
    right
}

refuses() { # LINE WHAT MODEL OPTION... -- PROBE-OPTION...
    step "$2"
    "$here/run-ring" "$machines/$3.json" "${@:4}" "${collectives[@]}" >"$work/rings" 2>"$work/errors" || true
    grep -qE "$1" "$work/errors" || { cat "$work/errors"; fail "$what: nobody says that it is refused"; }
    sort "$work/errors" | uniq -c | head -n 3
    ! grep -q '"wrong": [1-9]' "$work/rings" || fail "$what: wrong data"
}

runs "NCCL's own memory" dual-8gpu --gpus 0-1 -- --buffers nccl
runs "NCCL's own memory, on two nodes, in a graph" epyc-8gpu --gpus 0 --nodes 2 -- --buffers nccl --replays 2
runs "registered buffers on two nodes, without GPUDirect" epyc-8gpu --gpus 0 --nodes 2 -- --buffers registered
refuses "tccl rig: a (collective|send) of registered buffers refused" "registered buffers of one node" dual-8gpu --gpus 0-1 -- --buffers registered
refuses "tccl rig: a (collective|send) of registered buffers refused" "NCCL's own memory in a graph" dual-8gpu --gpus 0-1 -- --buffers nccl --replays 2
refuses "rank [01]: NCCL's own memory: |tccl rig: .* refused" "windows" dual-8gpu --gpus 0-1 -- --buffers window
collectives=(--collective all-gather:1000000:f16)
refuses "tccl rig: AllGather PAT SIMPLE refused" "PAT" epyc-8gpu --gpus 0 --nodes 2 --set "NCCL_ALGO=PAT" --
