#!/bin/bash
# A job on the GPUs that tccl-path place ranks first is told the bandwidth that place says: of 2, 3 and 4 GPUs, on a node that is
# idle, and of 2 beside another job, with as many rings at once as there are, or NCCL's own. Its record
# knows no better GPUs, where these are few enough for tccld to have looked at all.
# cluster: own
# level: all
. "$(dirname "$0")/lib.sh"

own_cluster --nodes 2 --model amd-4gpu --model dual-8gpu
chmod 1777 "$work"

profile_of() { # NODE
    dirname "$(readlink -f "$cluster/nodes/$1/kind")"/cache/*/profile.json
}

# The first place's GPUs, and what a job gets there; "-": beside nobody.
place() { # NODE COUNT BUSY
    local busy=()
    [ "$3" = - ] || busy=(--busy "$3")
    admin tccl-path place --profile "$(profile_of "$1")" --gpus "$2" "${busy[@]}" --json >"$work/places.json"
    python3 - "$work/places.json" <<'FIRST'
import json, sys
with open(sys.argv[1]) as file:
    answer = json.load(file)
first = answer["places"][0]
most = max(place["alone_gbps"] for place in answer["places"])
print(",".join(map(str, first["gpus"])), f'{first["gbps"]:.2f}', f'{first["alone_gbps"]:.2f}', f"{most:.2f}")
FIRST
}

# The job on these GPUs is told so much.
told() { # NODE GPUS GBPS
    local count
    count=$(tr -dc , <<<"$2" | wc -c)
    leave_free "$1" "$2"
    srun_show -N1 -w "$1" --gpus=$((count + 1)) --tccl=on
    equal "tasks" "$(tasks)" 1
    if [ "$(values TCCL_STATE)" = planned ]; then
        equal "TCCL_GBPS on GPUs $2 of $1" "$(values TCCL_GBPS)" "$3"
    else
        equal "NCCL's own on GPUs $2 of $1" "$(values TCCL_BASELINE_GBPS)" "$3"
    fi
}

first_runs() { [ -e "$work/first" ]; }

counts=([1]="2 3 4" [2]="3 4")
for node in n1 n2; do
    for count in ${counts[${node#n}]}; do
        read -r gpus gbps alone most < <(place $node $count -)
        echo "--- $node, $count GPUs: $gpus, $gbps GB/s"
        equal "nobody runs" "$gbps" "$alone"
        told $node "$gpus" "$gbps"
        [ $node = n1 ] && [ "$(values TCCL_STATE)" = planned ] || continue
        for try in 1 2 3; do # found out after the first step of so many GPUs
            told $node "$gpus" "$gbps"
            recorded "$(job_of)" 0 state planned
            [ "$(record "$(job_of)" 0 placed_gbps)" = 0.0 ] || break
        done
        recorded "$(job_of)" 0 placed_gbps "$(sed 's/0*$//; s/\.$//' <<<"$most")*"
    done
    [ $node = n1 ] || continue
    read -r busy gbps alone most < <(place $node 2 -)
    leave_free $node "$busy"
    rm -f "$work/first" "$work/over"
    user srun -N1 -w $node --gpus=2 --tccl=on sh -c "touch $work/first; until [ -e $work/over ]; do sleep 0.1; done" 2>"$work/first.err" &
    first=$!
    eventually "the first step" first_runs
    read -r gpus gbps alone most < <(place $node 2 "$busy")
    echo "--- $node, 2 GPUs beside $busy: $gpus, $gbps GB/s"
    told $node "$gpus" "$gbps"
    recorded "$(job_of)" 0 neighbours 1
    touch "$work/over"
    wait $first || fail "the first step: $(cat "$work/first.err")"
    user scancel --name=hold -w $node
done
