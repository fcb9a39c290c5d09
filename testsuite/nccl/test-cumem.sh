#!/bin/bash
# The two modes of NCCL: as drivers from CUDA 12 on make it run, with virtual memory management (cuMem) and connected at the
# first collective, which is the mode of all tests here that don't say otherwise; and the older one. Rings and the
# transport of each edge are the same in both. Which mode NCCL was in is read from its own log.
# level: all
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

mode() { # FILE MEMORY CONNECTED
    look "$1" "
expect('memory', answer['mode']['memory'], '$2')
expect('connected', answer['mode']['connected'], '$3')"
}

compare() { # MODEL OPTION...
    run_ring "$work/new" "$@"
    run_ring "$work/old" "$@" --cumem off
    mode "$work/new" cumem "first collective"
    mode "$work/old" older init
    "$here/same-rings" "$work/old" "$work/new" --without-handles || fail "$*: the modes have different rings"
}

compare amd-4gpu
compare dual-8gpu
compare epyc-8gpu --nodes 2

# What the rig takes for the mode is not what it was asked for: NCCL's own setting turns cuMem off.
! "$here/run-ring" "$machines/amd-4gpu.json" --set NCCL_CUMEM_ENABLE=0 >"$work/wrong" 2>"$work/err" ||
    fail "NCCL in the older mode is taken for the newer one"
grep -q "NCCL was in mode older, not cumem" "$work/err" || fail "the mode is not said: $(cat "$work/err")"
