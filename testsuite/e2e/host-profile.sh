#!/bin/bash
# Measured profiles from end to end: a node measures itself as a Slurm job (cores in place of GPUs), goes
# on in a second job, and the profile serves a step of two nodes: a ring is planned, or NCCL's own is
# as fast on this machine; and the record says where its numbers come from.
# cluster: own
# level: all
. "$(dirname "$0")/lib.sh"

own=$(mktemp -d --tmpdir tccl-host-profile-XXXXXX)
trap 'rm -rf "$own"' EXIT
profile=$build/profiler/tccl-profile
how=(--backend host --devices 2 --window 2 --repeats 3 --gap 0.5)
mkdir "$own/cache"
"$profile" init --backend host --devices 2 --machine "$own/machine.json"
for _ in {1..6}; do # on a busy machine, 8 s are little
    "$profile" run "${how[@]}" --cache "$own/cache" --budget 8s
    folder=$(dirname "$own"/cache/*/profile.json)
    [ ! -e "$folder/chains/00000003.chains" ] || break
done
grep -q '"source": "host"' "$folder/profile.json" || fail "the profile doesn't say that it is measured"
[ -e "$folder/chains/00000003.chains" ] || fail "no chains for GPUs 0-1"

own_cluster --nodes 2 --profile "$own" # which copies it
rm -rf "$own"

# ---- a step of two nodes, and one of one node ----

solved() { # TASKS RING-PATTERN LINE-PATTERN
    local job
    equal "exit status" "$status" 0
    job=$(job_of)
    recorded "$job" 0 source host
    if [ "$(values TCCL_STATE)" = planned ]; then
        has_ring "$1"
        recorded "$job" 0 state planned
        matches "the ring" "$(values TCCL_RING)" "$2"
        says "$3"
    else
        all_have TCCL_STATE left
        none_has TCCL_RING
        matches TCCL_REASON "$(values TCCL_REASON)" "NCCL's own *(* GB/s*)"
        recorded "$job" 0 state left
        says "tccl: nothing to do: NCCL's own *"
    fi
}
srun_show -N2 --gpus-per-node=2 --ntasks-per-node=1 --tccl=on
solved 2 'n1\[lo -m0> *\] n2\[lo -m0> *\]' 'tccl: *ring* of 2 nodes, 4 GPUs*'
srun_show -w n1 -N1 --gpus-per-node=2 --ntasks-per-node=1 --tccl=on
solved 1 '*' 'tccl: *ring* of 2 GPUs*'

# ---- as a Slurm job ----

script=$work/profile-job.sh
cp "$root/contrib/profile-job.sh" "$script"
mkdir "$work/mine"
chmod 777 "$work/mine"
submit() { # BUDGET-OPTION...
    TCCL_CACHE=$work/mine/cache TCCL_TO=$work/mine/result batch -w n2 -t 5 "$script" "${how[@]}" "$@"
}
submit --budget 2s
matches "the job's output" "$(<"$work/batch")" '*done with *on n2*'
submit --budget 4s
matches "the job's output" "$(<"$work/batch")" '*loads measured*'
id=$(basename "$folder")
admin "$profile" verify --cache "$work/mine/result" "$id"
[ -s "$work/mine/result/$id/sets.jsonl" ] || fail "the job left no measurements"
# Twice at most; what is chosen, and what NCCL builds, four times (fill/run-meter.h).
times=$(grep -v '"failed":true' "$work/mine/result/$id/sets.jsonl" | grep -o '"set":"[^"]*"' | sort | uniq -c)
equal "sets that were measured more than four times" "$(awk '$1 > 4' <<<"$times")" ""
# What is chosen may change as a run goes on: three times as many as the tables have in the end.
chosen=$(cat "$work/mine/result/$id"/chains/*.chains |
    grep -cvE '^(tccl-chains|machine|source|gpus|measured|noise|nccl|ends|tree|none|other|sum) ' || true)
often=$(awk '$1 > 2' <<<"$times" | wc -l)
[ "$often" -le $((3 * chosen)) ] || fail "$often sets were measured more than twice, $chosen are chosen or NCCL's: $times"
