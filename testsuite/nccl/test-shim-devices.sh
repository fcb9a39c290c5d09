#!/bin/bash
# GPUs that processes see under other numbers; jobs under mpirun and torchrun, where Slurm's
# variables of all processes are those of one task.
# level: all
. "$(dirname "${BASH_SOURCE[0]}")/shim.sh"

make_plans "dual-8gpu:0,2,3=0 -w> 3 -m0> 2 -m1> 0"
seen() { # WHAT OPTION...
    step "$1"
    shift
    run_planned dual-8gpu "$@"
    as_planned
    no_warning
}

seen "in another order" --gpus 3,0,2
seen "by UUID" --gpus 2,3,0 --uuids
seen "each process its own GPU first" --gpus 0,2,3 --own-first
seen "the same by UUID" --gpus 3,2,0 --own-first --uuids
seen "each process its own GPU only" --gpus 0,2,3 --own-only
seen "one task for all, as under torchrun" --gpus 0,2,3 --set SLURM_PROCID=0 --set SLURM_LOCALID=0 --set SLURM_NTASKS=1
seen "a task id that differs, as under mpirun" --gpus 0,2,3 --set SLURM_PROCID=0 --set SLURM_TASK_PID=1 --set OMPI_COMM_WORLD_SIZE=3

step "GPUs of which one is not the step's"
as_alone dual-8gpu --gpus 0,2,5
said WARN
step "fewer GPUs than the step's"
as_alone dual-8gpu --gpus 0,3
said WARN
step "more GPUs than the step's"
as_alone dual-8gpu --gpus 0-3
said WARN
