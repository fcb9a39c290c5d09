#!/bin/bash
# All ways in which programs make communicators work here: what the rig shows of them can be relied on.
# level: all
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

check() { # WHAT PYTHON-LINES MODEL OPTION...
    local what=$1 lines=$2
    shift 2
    echo "$what"
    run_ring "$work/rings" "$@"
    look "$work/rings" "$lines"
}

all_four='
for order in orders():
    expect("ranks in the ring", sorted(order), [0, 1, 2, 3])'
check "ncclCommInitAll" "$all_four" amd-4gpu --processes 1 -- --init all
check "a group" "$all_four" amd-4gpu --processes 1 -- --group
check "threads" "$all_four" amd-4gpu --processes 1 -- --threads --init config
check "two GPUs in each process" "$all_four" amd-4gpu --processes 2 -- --init scalable
check "without waiting" "$all_four" amd-4gpu -- --nonblocking
check "two communicators, a split and a shrunken one" '
expect("communicators", sorted(comms), ["comm 0", "comm 1", "shrunken", "split 0", "split 1"])
expect("ranks", [comms[name]["ranks"] for name in sorted(comms)], [4, 4, 3, 2, 2])
expect("GPUs of the odd ranks", sorted(comms["split 1"]["gpus"].values()), ["0000:41:00.0", "0000:61:00.0"])
expect("GPUs but one", sorted(comms["shrunken"]["gpus"].values()), ["0000:01:00.0", "0000:44:00.0", "0000:61:00.0"])' \
    amd-4gpu -- --comms 2 --split 2 --shrink 1
check "visible devices in another order" '
expect("GPUs of ranks", comms["comm 0"]["gpus"], {"0": "0000:61:00.0", "1": "0000:01:00.0", "2": "0000:44:00.0"})' \
    amd-4gpu --gpus 3,0,2
