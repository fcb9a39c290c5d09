#!/bin/bash
# Kernels of a stock NCCL run, on the CPU: all collectives of all types and operations, by each protocol, in rings and trees, have the
# right results. Where nothing runs they are wrong, and what can't run is refused. In cuMem mode.
# level: quick
. "$(dirname "${BASH_SOURCE[0]}")/data.sh"

add "$reducing" "4 1000 100000" "i8 u8 i32 u32 i64 u64 f16 bf16 f32 f64" "sum prod min max avg"
add "$copying" "4 1000 100000" "i8 f32"
for protocol in Simple LL LL128; do
    step "$protocol"
    run_ring "$work/rings" amd-4gpu --gpus 0-2 --set NCCL_PROTO=$protocol -- "${collectives[@]}"
    right | tee "$work/said"
    for algorithm in RING TREE; do
        [ $protocol$algorithm = LLTREE ] || grep -q "AllReduce/$algorithm/${protocol^^}" "$work/said" || fail "$protocol was not launched"
    done
done

step "nothing runs"
run_ring "$work/rings" amd-4gpu --gpus 0-2 --launch nothing -- "${collectives[@]}"
look "$work/rings" '
good = {(call["call"], call["rank"]) for call in answer["calls"] if call.get("wrong") == 0}
expect("right without kernels", good, {("reduce", 0), ("reduce", 1)})  # who receive nothing'
! "$here/compare-data" "$work/rings" || fail "wrong data are taken for right"

# Two nodes of one GPU take the algorithm PAT.
step "what can't run"
run_ring "$work/rings" epyc-8gpu --gpus 0 --nodes 2 --set NCCL_ALGO=PAT -- --check --collective reduce-scatter:4096:f32 2>"$work/err"
grep -q "tccl rig: ReduceScatter Sum f32 PAT SIMPLE refused" "$work/err" || fail "not refused: $(cat "$work/err")"
