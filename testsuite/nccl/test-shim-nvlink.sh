#!/bin/bash
# NVLink between all GPUs is better than any ring over PCIe: none is imposed. A GPU that is cut into
# instances, too. NVLink between some of them does not matter where the chain is right.
# level: all
. "$(dirname "${BASH_SOURCE[0]}")/shim.sh"

make_plans "dual-8gpu:0,2,4=0 -m0> 4 -m0> 2 -m1> 0"
step "NVLink between all"
as_alone dual-8gpu --gpus 0,2,4 --add "nvlink 0 2" --add "nvlink 2 4" --add "nvlink 0 4"
said "WARN.*NVLink" 1
step "by a switch"
as_alone dual-8gpu --gpus 0,2,4 --add "nvlink 0 switch" --add "nvlink 2 switch" --add "nvlink 4 switch"
said "WARN.*NVLink" 1
step "a bounce where there is NVLink can't be had"
as_alone dual-8gpu --gpus 0,2,4 --add "nvlink 0 2"
said WARN
step "NVLink to a GPU that takes no part"
run_planned dual-8gpu --gpus 0,2,4 --add "nvlink 0 6"
as_planned
step "a GPU in instances"
as_alone dual-8gpu --gpus 0,2,4 --add "mig 2"
said WARN
