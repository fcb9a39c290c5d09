#!/bin/bash
# tcclacct as sacct's users type it, on the records of real jobs: -X, -s, -S and -E, --delimiter,
# TCCLACCT_FORMAT, -M; the ring of a job in text and as a picture; a summary, counted again.
# cluster: mixed
# level: quick
. "$(dirname "$0")/lib.sh"

began=$(date +%s)
cat >"$work/script" <<'SCRIPT'
#!/bin/bash
srun -N4 --gpus-per-node=4 --ntasks-per-node=1 --tccl=on true
srun -N2 --gpus-per-node=4 --ntasks-per-node=1 --tccl=on true
srun -N4 --gpus-per-node=4 --ntasks-per-node=1 --tccl=off true
SCRIPT
chmod 755 "$work/script"
batch -N4 --gpus-per-node=4 --tccl=off --job-name="<b>&日本" "$work/script"
for step in 0 1 2; do
    eventually "a record of $job.$step" has_record "$job" $step
done
built() { # STEP: is it known what was built?
    [ -n "$(record "$job" "$1" built)" ]
}
for step in 0 1; do
    eventually "what was built of $job.$step" built $step
done
show() {
    user tcclacct -nP "$@"
}

# ---- one line a job; which states; when ----
equal "-X" "$(show -X -j "$job" -o jobid,state,nnodes,jobname)" "$job|planned|4|<b>&日本"
eventually "a record of the script" has_record "$job" batch
steps=$(show -j "$job" | wc -l)
equal "steps of the job" "$(show -X -j "$job" -o steps)" "$steps"
equal "-s" "$(show -j "$job" -s PLA -o jobid | xargs)" "$job.0 $job.1"
equal "-i" "$(show -j "$job" -i 2 -o jobid)" "$job.1"
equal "-S" "$(show -S "uts$began" -s planned -o jobid --name='<b>&日本' | xargs)" "$job.0 $job.1"
equal "-E" "$(show -S now-1hour -E "uts$began" -o jobid -s planned | grep -c "^$job" || true)" 0
equal "-r" "$(show -j "$job" -r no-such-partition)" ""

# ---- how ----
equal "--delimiter" "$(user tcclacct -Pn --delimiter=' ; ' -j "$job.0" -o jobid,state)" "$job.0 ; planned"
equal "TCCLACCT_FORMAT" "$(user env TCCLACCT_FORMAT=state,jobid tcclacct -nP -j "$job.1")" "planned|$job.1"
equal "-M" "$(show -M all -j "$job.0" -o jobid 2>"$work/err")" "$job.0"
matches "the word on -M" "$(cat "$work/err")" "tccl: --clusters is ignored: *"
if user tcclacct -s CD >"$work/out" 2>"$work/err"; then
    fail "a state of jobs is taken for one of rings"
fi
matches "the word on -s CD" "$(cat "$work/err")" "tccl: 'CD' is a job state*planned*"

# ---- the ring ----
user env LC_ALL=C.UTF-8 COLUMNS=80 tcclacct ring "$job" >"$work/ring" 2>"$work/err"
cat "$work/ring"
for part in "Step $job.0: <b>&日本 of nobody" "4 nodes, 16 GPUs" "GB/s" "baseline" "n[1-2]  ×2" "n[3-4]  ×2" "back to n1"; do
    grep -qF -- "$part" "$work/ring" || fail "the ring does not show '$part'"
done
[ "$(LC_ALL=C.UTF-8 wc -L <"$work/ring")" -le 80 ] || fail "lines are wider than the terminal"
user tcclacct ring "$job.0" --svg >"$work/ring.svg"
user tcclacct ring "$job.0" --json >"$work/ring.json"
python3 "$here/ring_svg.py" "$work/ring.svg" "$work/ring.json" || fail "the picture does not show the ring"
user tcclacct ring "$job.0" --svg="$work/file.svg"
cmp "$work/ring.svg" "$work/file.svg" || fail "--svg=FILE is another picture"
if user tcclacct ring "$job.2" >"$work/out" 2>"$work/err"; then
    fail "a step that was off has a ring"
fi
equal "lines for a step without ring" "$(cat "$work/err" "$work/out" | wc -l)" 1
matches "the line" "$(cat "$work/err")" "tccl: step $job.2 has no ring: off*"

# ---- a summary, against the records themselves ----
counted() { # what the tests before this one have left may still arrive
    user tcclacct --json -S now-30days >"$work/records.json"
    user tcclacct summary --json -S now-30days >"$work/summary.json"
    python3 "$here/count_records.py" "$work/records.json" "$work/summary.json" >"$work/out" 2>&1
}
(eventually "the summary is what the records say" counted) || { cat "$work/out"; fail "the summary is not what the records say"; }
user tcclacct summary >"$work/out"
cat "$work/out"
grep -q '^The last 30 days' "$work/out" || fail "the summary does not say its time"
grep -q '^  planned  .*%' "$work/out" || fail "the summary has no rings"
