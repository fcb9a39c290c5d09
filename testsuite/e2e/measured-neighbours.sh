#!/bin/bash
# Steps side by side on a node with a measured profile (cores in place of GPUs): what they do to each other was measured
# together, and the record says so; where that is missing, it says that there are only bounds.
# cluster: own
# level: all
. "$(dirname "$0")/lib.sh"

own=$(mktemp -d --tmpdir tccl-measured-neighbours-XXXXXX)
trap 'rm -rf "$own"' EXIT
profile=$build/profiler/tccl-profile
how=(--backend host --devices 4 --window 1 --repeats 3 --gap 0.5)
mkdir "$own/cache"
"$profile" init --backend host --devices 4 --machine "$own/machine.json"
"$profile" run "${how[@]}" --cache "$own/cache" --neighbours --splits 0-1/2-3 --json >"$own/summary"
folder=$(dirname "$own"/cache/*/profile.json)
python3 -c 'import json, sys; j = json.load(open(sys.argv[1])); sys.exit(not 0 < j["together"] <= j["together_total"])' \
    "$own/summary" || fail "nothing was measured together: $(<"$own/summary")"
"$profile" verify --cache "$own/cache" || fail "the profile is bad"
[ -s "$folder/together.jsonl" ] || fail "no results of steps beside each other"

own_cluster --nodes 1 --profile "$own" # which copies it
rm -rf "$own"
chmod 1777 "$work"

first_runs() { [ -e "$work/first" ]; }
user srun -N1 --gpus=2 sh -c "touch $work/first; until [ -e $work/over ]; do sleep 0.1; done" &
first=$!
eventually "the first step" first_runs

beside() { # BASIS: a step beside NCCL's own rings
    srun_show -N1 --gpus=2 --tccl=on
    equal "exit status" "$status" 0
    recorded "$(job_of)" 0 neighbours 1
    recorded "$(job_of)" 0 neighbours_by "$1"
    recorded "$(job_of)" 0 beside '*/* nccl: *'
}

echo "--- measured together"
beside measured

echo "--- by bounds"
for file in "$cluster"/profiles/*/cache/*/together.jsonl "$cluster"/nodes/n1/cache/*/together.jsonl; do
    [ ! -e "$file" ] || rm "$file"
done
beside bounds
touch "$work/over"
wait $first || fail "the first step failed"
