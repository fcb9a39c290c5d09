#!/bin/bash
# tcclacct: users see their own records only, root sees all.
# cluster: mixed
# level: quick
. "$(dirname "$0")/lib.sh"

srun_show -w n1 -N1 --gpus-per-node=4 --tccl=on
theirs=$(job_of)
admin srun -w n1 -N1 --gpus-per-node=4 --tccl=on sh -c 'echo $SLURM_JOB_ID' >"$work/job" </dev/null
roots=$(cat "$work/job")
recorded "$theirs" 0 user nobody
recorded "$roots" 0 user root
jobs_seen() { # BY...
    "$@" tcclacct -nP -o jobid -j "$theirs,$roots" -S now-1hour | sed 's/\..*//' | sort -n | xargs
}
equal "what root sees" "$(jobs_seen admin)" "$theirs $roots"
equal "what the user sees" "$(jobs_seen user)" "$theirs"
equal "what the user sees of root's" "$(user tcclacct -nP -o jobid -j "$roots" -u root 2>&1 | grep -c "^$roots" || true)" 0
