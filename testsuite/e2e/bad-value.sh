#!/bin/bash
# An unknown value of the option is refused by srun, sbatch and salloc before anything is queued, with one line
# that says what is allowed. In the environment (a module file may have TCCL=/opt/tccl, for something else) it is
# ignored, with one such line for a job, and handed on as it is.
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
    grep 'tccl: ' "$work/err" | grep require >/dev/null || fail "$*: does not say what is allowed"
    [ "$(newest_job)" -le "$last" ] || fail "$*: a job was made"
}
printf '#!/bin/sh\n' >"$work/job"
refused srun -N1 --tccl=maybe true
refused sbatch -N1 --tccl=maybe "$work/job"
refused salloc -N1 --tccl=maybe true

ignored() { # FILE: one line there says so
    equal "lines with tccl: in $1" "$(grep -c 'tccl: ' "$1")" 1
    matches "the line" "$(grep 'tccl: ' "$1")" "*tccl: TCCL is ignored: *'/opt/tccl'*require*"
}
ran() { # TASKS
    equal "tasks" "$(tasks)" "$1"
    all_have TCCL /opt/tccl
}
export TCCL=/opt/tccl
echo "--- srun"
srun_show -w n1 -N1 --gpus-per-node=4 --ntasks-per-node=2
equal "exit status" "$status" 0
ran 2
none_has TCCL_STATE
ignored "$work/err"
echo "--- the option goes before it"
srun_show -w n1 -N1 --gpus-per-node=4 --ntasks-per-node=1 --tccl=on
has_ring 1
says 'tccl: *ring*'
echo "--- sbatch, and its steps"
printf '#!/bin/bash\nfor i in 1 2; do srun --ntasks-per-node=1 %q; done\n' "$work/show" >"$work/job"
batch -w n1 -N1 --gpus-per-node=4 "$work/job" 2>"$work/submitted"
ran 2
ignored "$work/submitted"
! grep 'tccl: ' "$work/batch" || fail "the job says it, too"
echo "--- salloc, and its steps"
user_show salloc -Q -w n1 -N1 --gpus-per-node=4 bash "$work/job"
equal "exit status" "$status" 0
ran 2
ignored "$work/err"
echo "--- where a job script sets it, TCCL= of sbatch holds"
sed -i '1a export TCCL=/opt/tccl' "$work/job"
TCCL=on batch -w n1 -N1 --gpus-per-node=4 "$work/job"
ran 2
has_ring 2
equal "lines that say so" "$(grep -c 'TCCL is ignored' "$work/batch")" 1
echo "--- nor does an option that another version's sbatch has handed on end anything"
export SLURM_SPANK__SLURM_SPANK_OPTION_tccl_tccl=later
unset TCCL
srun_show -w n1 -N1 --gpus-per-node=4 --ntasks-per-node=1
equal "exit status" "$status" 0
equal "tasks" "$(tasks)" 1
none_has TCCL_STATE
says "*tccl: --tccl of the job is ignored: 'later'*"
