#!/bin/bash
# All ways in which programs make communicators get the planned ring: one process with many GPUs,
# groups, threads, Config, Scalable, without waiting; several communicators.
# level: all
. "$(dirname "${BASH_SOURCE[0]}")/shim.sh"

# Each in a job step of its own: in a group, NCCL asks for its settings before the process has named all of its GPUs, and
# its buffers are then left alone for the whole step. (Within one process the plan doesn't need them moved.)
way() { # WHAT OPTION...
    step "$1"
    shift
    make_plans "dual-8gpu:$gpus=$chain"
    run_planned dual-8gpu --gpus "$gpus" "$@"
    as_planned
    no_warning
}

gpus=0-3
chain="0 -m0> 1 -w> 3 -m0> 2 -w> 0"
way "threads and Config" --processes 2 -- --threads --init config
way "Scalable, two GPUs in each process" --processes 2 -- --init scalable

gpus=0,2,3
chain="0 -w> 3 -m0> 2 -m1> 0"
way "ncclCommInitAll" --processes 1 -- --init all
way "a group" --processes 1 -- --group
printf '#!/bin/sh\nexport SLURM_TASK_PID=$$ SLURM_STEP_NUM_TASKS=1 SLURM_STEP_NUM_NODES=1\nexec "$@"\n' >"$work/as-task"
chmod 755 "$work/as-task"
way "a group in the only task of a step, which waits for nobody" --processes 1 --under "$work/as-task"
way "threads" --processes 1 -- --threads
way "a thread for each GPU with a group of its own, in the only task of a step" --processes 1 --under "$work/as-task" -- --threads --group
way "Config" -- --init config
way "without waiting" -- --nonblocking
way "without waiting, one process" --processes 1 -- --nonblocking --group
way "two communicators" -- --comms 2
as_planned "comm 1"
way "two communicators, in a process with all GPUs, each in threads" --processes 1 -- --comms 2 --threads
as_planned "comm 1"

step "two communicators of one GPU in one group can't be told apart: none is touched"
as_alone dual-8gpu --gpus "$gpus" -- --comms 2 --group
said WARN
as_alone dual-8gpu --gpus "$gpus" --processes 1 -- --comms 2 --group
said WARN
