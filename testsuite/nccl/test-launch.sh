#!/bin/bash
# A collective on devices that are not there fails, and says so: it must never seem to work.
# level: quick
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

if "$here/run-ring" "$machines/amd-4gpu.json" -- --all-reduce >"$work/out" 2>"$work/err"; then
    cat "$work/out"
    fail "an all-reduce without GPUs succeeded"
fi
grep -q 'tccl rig: a kernel launch refused' "$work/err" || fail "no word about the launch: $(cat "$work/err")"
grep -q 'all-reduce: unhandled cuda error' "$work/err" || fail "NCCL reported no error: $(cat "$work/err")"
