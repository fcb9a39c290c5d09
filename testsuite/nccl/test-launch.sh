#!/bin/bash
# A collective on devices that are not there never seems to work: its kernel's launch fails and says so, or does nothing
# and leaves the data wrong. The communicator is there all the same, and can be ended.
# level: quick
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

all_reduce() { # OPTION...: NCCL's mode is cuMem
    if "$here/run-ring" "$machines/amd-4gpu.json" "$@" -- --all-reduce >"$work/out" 2>"$work/err"; then
        cat "$work/out"
        fail "an all-reduce without GPUs succeeded ($*)"
    fi
}

all_reduce --launch refuse
grep -q 'tccl rig: a kernel launch refused' "$work/err" || fail "no word about the launch: $(cat "$work/err")"
grep -q 'all-reduce: unhandled cuda error' "$work/err" || fail "NCCL reported no error: $(cat "$work/err")"
all_reduce --launch nothing
grep -q 'all-reduce: the sum is wrong' "$work/err" || fail "not for its sum: $(cat "$work/err")"

run_ring "$work/rings" amd-4gpu --launch refuse
look "$work/rings" '
ends = {call["call"]: call["result"] for call in answer["calls"]}
expect("results", ends, {"broadcast": "unhandled cuda error", "destroy": "no error"})'
