#!/bin/bash
# Steps side by side on a node whose profile has no model: what they do to each other was measured together, and the record says
# so; where that is missing, it says that there are only bounds. On n1 it was really measured, with cores in place of GPUs, which
# says now this, now that on a machine that others use; on n2 by a model, which the profile then has no more.
# cluster: own
# level: all
. "$(dirname "$0")/lib.sh"

own=$(mktemp -d --tmpdir tccl-measured-neighbours-XXXXXX)
trap 'rm -rf "$own"' EXIT
profile=$build/profiler/tccl-profile
model=$own/slow-memories.json # NCCL's own has two memories, ours the others: so a ring of two GPUs is worth it by bounds, too
sed -E '/"m[02] memory"/s/"gbps": 32/"gbps": 8/' "$models/intel-4gpu.json" >"$model"
! cmp -s "$model" "$models/intel-4gpu.json" || fail "the model has no such memories"
how=(--backend host --devices 4 --window 1 --repeats 3 --gap 0.5)
mkdir -p "$own"/{real,known}/cache

"$profile" init --backend host --devices 4 --machine "$own/real/machine.json"
measure() { # another run tries again what could not be measured
    "$profile" run "${how[@]}" --cache "$own/real/cache" --neighbours --splits 0-1/2-3 --json >"$own/summary" &&
        python3 -c 'import json, sys; j = json.load(open(sys.argv[1])); sys.exit(not 0 < j["together"] <= j["together"] + j["together_foretold"] == j["together_total"])' "$own/summary"
}
for try in {1..5}; do
    ! measure || break
done
measure || fail "not all is measured together: $(<"$own/summary")"

"$profile" init --model "$model" --machine "$own/known/machine.json"
"$profile" run -q --model "$model" --cache "$own/known/cache" --neighbours --splits 0-1/2-3
for kind in real known; do
    "$profile" verify --cache "$own/$kind/cache" || fail "the profile is bad: $kind"
    [ -s "$own"/$kind/cache/*/together.jsonl ] || fail "no results of steps beside each other: $kind"
done
rm "$own"/known/cache/*/model.json

own_cluster --nodes 2 --profile "$own/real" --profile "$own/known" # which copies them
rm -rf "$own"
chmod 1777 "$work"

both_run() { [ -e "$work/first.n1" ] && [ -e "$work/first.n2" ]; }
firsts=()
for node in n1 n2; do
    user srun -w $node -N1 --gpus=2 sh -c "touch $work/first.$node; until [ -e $work/over ]; do sleep 0.1; done" &
    firsts+=($!)
done
eventually "the first step of each node" both_run

beside() { # NODE BASIS: a step beside NCCL's own rings
    srun_show -w "$1" -N1 --gpus=2 --tccl=on
    equal "exit status" "$status" 0
    recorded "$(job_of)" 0 neighbours 1
    recorded "$(job_of)" 0 neighbours_by "$2"
}
ring_beside() { # BESIDE-PATTERN: the step that has just run
    has_ring 1
    recorded "$(job_of)" 0 beside "$1"
}
by_bounds() { # the step that has just run, on n2
    ring_beside '*/* nccl: *'
    says 'tccl: ring of 2 GPUs: at least *GB/s beside 1 other step (bounds), alone *'
    equal "TCCL_GBPS by bounds" "$(values TCCL_GBPS)" 1.12
}

echo "--- measured together"
known='[mf]*d' # measured, or foretold by what was
beside n1 "$known"
beside n2 "$known"
ring_beside '*/* nccl: *'
says 'tccl: ring of 2 GPUs: *GB/s beside 1 other step ([mf]*d), alone *'
equal TCCL_GBPS "$(values TCCL_GBPS)" 7.87 # as alone

echo "--- unreadable: the log says so, and there are bounds"
for kind in garbage huge; do
    rm -f "$cluster"/nodes/n2/cache/*/together.jsonl
    beside n2 bounds
    file=$(echo "$cluster"/nodes/n2/cache/*)/together.jsonl
    case $kind in
    garbage) echo garbage >"$file" && why='together.jsonl:1: checksum does not match' ;;
    huge) truncate -s 2G "$file" && why='together.jsonl: has 2147483648 bytes' ;;
    esac
    sleep 10 # such lines are limited; a look after the step before may have read it by now: it is another one then
    touch "$file"
    beside n2 bounds
    by_bounds
    eventually "a line: $why" grep "steps beside others are planned by bounds: .*$why" "$cluster/log/tccld@n2.out"
done

echo "--- by bounds"
rm "$cluster"/nodes/*/cache/*/together.jsonl
beside n1 bounds
beside n2 bounds
by_bounds
touch "$work/over"
for first in "${firsts[@]}"; do wait "$first" || fail "a first step failed"; done
