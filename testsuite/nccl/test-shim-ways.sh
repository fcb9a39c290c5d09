#!/bin/bash
# All ways in which programs make communicators get the planned ring: one process with many GPUs,
# groups, threads, Config, Scalable, without waiting; several communicators.
. "$(dirname "${BASH_SOURCE[0]}")/shim.sh"

make_plans "dual-8gpu:0-3=0 -m0> 1 -w> 3 -m0> 2 -w> 0"
way() { # WHAT OPTION...
    step "$1"
    shift
    run_planned dual-8gpu --gpus 0-3 "$@"
    as_planned
    no_warning
}

way "ncclCommInitAll" --processes 1 -- --init all
way "a group" --processes 1 -- --group
way "threads" --processes 1 -- --threads
way "threads and Config" --processes 2 -- --threads --init config
way "Scalable, two GPUs in each process" --processes 2 -- --init scalable
way "Config" -- --init config
way "without waiting" -- --nonblocking
way "without waiting, one process" --processes 1 -- --nonblocking --group
way "two communicators" -- --comms 2
as_planned "comm 1"
way "two communicators, in a process with all GPUs, each in threads" --processes 1 -- --comms 2 --threads
as_planned "comm 1"

step "two communicators of one GPU in one group can't be told apart: none is touched"
as_alone dual-8gpu --gpus 0-3 -- --comms 2 --group
said WARN
as_alone dual-8gpu --gpus 0-3 --processes 1 -- --comms 2 --group
said WARN
