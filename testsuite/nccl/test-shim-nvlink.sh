#!/bin/bash
# Where NVLink joins all GPUs of a communicator, directly or by switches, NCCL knows better; where it
# joins some, an edge between them can't be had through host memory.
. "$(dirname "${BASH_SOURCE[0]}")/shim.sh"

make_plans "amd-4gpu=0 -m0> 1 -m1> 2 -m2> 3 -m3> 0"
links() { # PAIR...: options for NVLinks, such as 0-1 or 0-switch
    local pair
    for pair; do printf -- '--add\nnvlink %s %s\n' "${pair%-*}" "${pair#*-}"; done
}
aside() { # WHAT REASON PAIR...
    local options
    step "$1"
    mapfile -t options < <(links "${@:3}")
    as_alone amd-4gpu "${options[@]}"
    said "WARN.*$2"
}

aside "between all of them" "NVLink joins all" 0-1 0-2 0-3 1-2 1-3 2-3
aside "switches" "NVLink joins all" 0-switch 1-switch 2-switch 3-switch
aside "between two that the chain joins through host memory" "host memory" 0-1
