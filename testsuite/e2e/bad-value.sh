#!/bin/bash
# An unknown value is refused by srun, sbatch and salloc before anything is queued, with one line
# that says what is allowed; so is one in the environment.
# cluster: mixed
# level: quick
. "$(dirname "$0")/lib.sh"

newest_job() { # old ones may be forgotten meanwhile
    admin scontrol show jobs -o | sed -nE 's/^JobId=([0-9]+).*/\1/p' | sort -n | tail -n 1 | grep . || echo 0
}
refused() { # COMMAND...
    local status=0 last
    last=$(newest_job)
    user "$@" >"$work/out" 2>"$work/err" || status=$?
    cat "$work/err"
    [ "$status" != 0 ] || fail "$*: exit status 0"
    equal "lines with tccl:" "$(grep -c 'tccl: ' "$work/err")" 1
    grep 'tccl: ' "$work/err" | grep -q require || fail "$*: does not say what is allowed"
    [ "$(newest_job)" -le "$last" ] || fail "$*: a job was made"
}
printf '#!/bin/sh\n' >"$work/job"
refused srun -N1 --tccl=maybe true
refused sbatch -N1 --tccl=maybe "$work/job"
refused salloc -N1 --tccl=maybe true
refused env TCCL=maybe srun -N1 true
