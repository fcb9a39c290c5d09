#!/bin/bash
# The rig's machines (pace.h) have the rates that the project's own evaluation gives, which was written by somebody else's reading of
# the same description: random sets on all models. Copies that take their time bring the same data, and of each buffer it is known
# where it is: on one node and two, with NCCL's own rings and with planned ones. In cuMem mode. Times are looked at in ../bench
# (achieved), not here.
# level: quick
. "$(dirname "${BASH_SOURCE[0]}")/data.sh"

step "rates"
for model in "$here"/../machines/*.json; do
    "$here/describe-pace" "$work/pace" "$model"
    TCCL_RIG_PACE=$work/pace "$TCCL_BUILD/testsuite/nccl/check-pace" "$model" || fail "other rates than by the model"
done
# The check can fail.
sed -i '0,/^resource \([0-9.]*\)/s//resource 0.5/' "$work/pace/node0"
! TCCL_RIG_PACE=$work/pace "$TCCL_BUILD/testsuite/nccl/check-pace" "$model" 2>/dev/null || fail "a changed machine has the rates of the model"

add all-reduce "1048576" "i32 f32"
add "all-gather reduce-scatter" "1048576" "u8"
paced() { # MODEL OPTION...
    run_ring "$work/rings" "$@" --pace 5 -- "${collectives[@]}" 2>"$work/err"
    right
    ! grep "not paced" "$work/err" || fail "a copy took no time"
}
step "NCCL's own rings"
paced amd-4gpu --gpus 0-2
paced epyc-8gpu --gpus 0,5 --nodes 2
step "planned ones"
make_plans --rings auto amd-4gpu
mapfile -t options < <(with_plans)
paced amd-4gpu "${options[@]}"
