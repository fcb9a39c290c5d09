#!/bin/bash
# profile-job.sh: measures a node as an exclusive Slurm job. Run it once per node class:
#
#   sbatch -w n17 profile-job.sh                       this node
#   sbatch -C a100 -t 8:00:00 profile-job.sh           any node of that class
#   TCCL_TO=/shared/tccl sbatch -w n17 profile-job.sh  and copies the profile there
#
# Arguments after the script's name go to tccl-profile run (--backend host --devices 2, --peer HOST …).
# It stops before the time limit, and the next job on the same node resumes; so does a job that was
# requeued or killed. Submit it as a user with write access to CacheDir of tccl.conf (root), or set
# TCCL_CACHE to a folder of your own. Afterwards copy the profile's folder to CacheDir of all nodes of
# the class.
#
#SBATCH --job-name=tccl-profile
#SBATCH --nodes=1 --ntasks=1
#SBATCH --exclusive
#SBATCH --time=2:00:00
#SBATCH --signal=B:TERM@60
#SBATCH --requeue --open-mode=append
#SBATCH --tccl=off
set -uo pipefail
PATH=$PATH:/usr/local/sbin:/usr/sbin

margin=120 # seconds before the time limit at which the run ends by itself; then comes the signal

# Seconds until the time limit; nothing where there is none. Slurm says days-hours:minutes:seconds.
time_left() {
    squeue -h -j "$SLURM_JOB_ID" -o %L | awk -F '[-:]' '
        !/^[0-9]/ { exit }
        { n = $NF; m = 60; if (NF > 1) n += m * $(NF - 1)
          if (NF > 2) n += 3600 * $(NF - 2); if (NF > 3) n += 86400 * $(NF - 3); print n }'
}

[ -n "${SLURM_JOB_ID:-}" ] || { echo "tccl: profile-job.sh: submit it with sbatch" >&2; exit 2; }
cache=()
[ -z "${TCCL_CACHE:-}" ] || cache=(--cache "$TCCL_CACHE")
budget=()
left=$(time_left)
if [ -n "$left" ]; then
    [ "$left" -gt $((2 * margin)) ] && left=$((left - margin)) || left=$((left / 2 + 1))
    budget=(--budget "${left}s")
fi

summary=$(mktemp)
trap 'rm -f "$summary"' EXIT
tccl-profile run --json ${cache[@]+"${cache[@]}"} ${budget[@]+"${budget[@]}"} "$@" >"$summary" &
run=$!
trap 'kill -TERM $run 2>/dev/null' TERM INT
wait $run
status=$?
while kill -0 $run 2>/dev/null; do # a signal ends wait, and then the run ends in order
    wait $run
    status=$?
done

folder=$(sed -n 's/^ "folder": "\(.*\)",$/\1/p' "$summary")
if [ -n "${TCCL_TO:-}" ] && [ -n "$folder" ]; then
    # First beside it, so that nobody finds half of it.
    new=$TCCL_TO/.${folder##*/}.$SLURM_JOB_ID
    mkdir -p "$TCCL_TO" && rm -rf "$new" && cp -r "$folder" "$new" &&
        rm -rf "${TCCL_TO:?}/${folder##*/}" && mv -T "$new" "$TCCL_TO/${folder##*/}" ||
        { echo "tccl: the profile can't be copied to $TCCL_TO" >&2; status=1; }
fi
case $status in
0) echo "tccl: profile-job.sh: done with ${folder##*/} on $SLURMD_NODENAME" >&2 ;;
130 | 143) echo "tccl: profile-job.sh: stopped; submit it again to go on" >&2 ;;
esac
exit $status
