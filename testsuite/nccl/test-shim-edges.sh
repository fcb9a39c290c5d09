#!/bin/bash
# Each edge P2P or through host memory as planned, also where NCCL by itself would do the opposite on
# each of them.
# level: all
. "$(dirname "${BASH_SOURCE[0]}")/shim.sh"

chain() { # WHAT MODEL GPUS CHAIN
    step "$1: $4"
    make_plans "$2:$3=$4"
    run_planned "$2" --gpus "$3"
    as_planned
    no_warning
}

chain "all that NCCL would not" dual-8gpu 0-3 "0 -m0> 1 -w> 2 -m0> 3 -w> 0"
chain "no P2P below a switch" dual-8gpu 0-1 "0 -m0> 1 -m1> 0"
chain "P2P from socket to socket" dual-8gpu 1,5 "1 -w> 5 -w> 1"
chain "three in a row, one by itself" dual-8gpu 0,2,4,6 "0 -w> 4 -w> 2 -m0> 6 -m1> 0"
chain "all bounces" dual-8gpu 0-3 "0 -m1> 2 -m0> 1 -m0> 3 -m0> 0"
chain "root ports, P2P" amd-4gpu 0-3 "0 -w> 2 -w> 1 -w> 3 -w> 0"
chain "root ports, both" intel-4gpu 0-3 "0 -w> 2 -m2> 1 -w> 3 -m0> 0"
chain "root ports of one memory" intel-4gpu 0,1 "0 -m3> 1 -m0> 0"
