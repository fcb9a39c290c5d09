#!/bin/bash
# A requeued job repeats its step numbers: each run has a ring and a record of its own.
# cluster: mixed
# level: quick
. "$(dirname "$0")/lib.sh"

cat >"$work/job" <<JOB
#!/bin/bash
$work/show
srun --ntasks-per-node=1 $work/show
touch $work/ran-\${SLURM_RESTART_COUNT:-0}
[ -n "\${SLURM_RESTART_COUNT:-}" ] || sleep 100
JOB
job=$(user sbatch --parsable --requeue --open-mode=append --output="$work/batch" -w n1,n2 -N2 \
    --gpus-per-node=4 --tccl=on "$work/job")
eventually "first run" test -e "$work/ran-0"
user scontrol requeue "$job"
start_now() { # the wait before a restart is only Slurm's caution
    [ -e "$work/ran-1" ] && return
    sleep 1 # or else its credential is of a second that slurmd has revoked
    [ "$(admin squeue -hj "$job" -o %r)" != BeginTime ] ||
        admin scontrol update JobId="$job" StartTime=now
    false
}
eventually "second run" start_now
eventually "end of job $job" job_ended "$job"
cat "$work/batch"
collect
has_ring 4 0
has_ring 2 batch
both_records() {
    records -j "$job"
    [ "$(python3 -c 'import json, sys
found = json.load(open(sys.argv[1]))
found = found["records"] if isinstance(found, dict) else found
print(sorted((r["restart"], r["state"]) for r in found if r["step"] == 0),
      [r["state"] for r in found if r["step"] == 0xfffffffb])' "$work/records.json")" = \
        "[(0, 'planned'), (1, 'planned')] ['left', 'left']" ]
}
eventually "a record for each run" both_records
