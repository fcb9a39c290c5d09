#!/bin/bash
# Random chains as the runtime shim's files express them: a stock NCCL builds each in that order, with
# P2P and host memory where they are planned.
# level: all
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

tool=$TCCL_BUILD/testsuite/nccl/write-topology
[ -x "$tool" ] || { echo "skipped: the build has no write-topology"; exit 77; }
check() { # MODEL NODES COUNT
    echo "$1, nodes: $2"
    "$here/check-islands" "$tool" "$machines/$1.json" "$2" "$3" || no_ring $? "$1, nodes: $2"
}
check amd-4gpu 1 2
check dual-8gpu 1 2
check epyc-8gpu 1 1
check intel-4gpu 2 1
