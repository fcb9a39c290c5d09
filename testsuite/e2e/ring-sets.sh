#!/bin/bash
# Several rings at once: two nodes with two NICs, and one of them alone, get as many rings (MaxRings=8) as their profile says are best, which the
# tasks, the record and the drawing have alike; a node whose second NIC is on a network of its own shrinks the set, and the record says so.
# cluster: own
# level: quick
. "$(dirname "$0")/lib.sh"

folder=$(mktemp -d --tmpdir tccl-ring-sets-XXXXXX)
trap 'rm -rf "$folder"' EXIT
profile() { # NAME: of all GPUs of the model that is there
    "$build/profiler/tccl-profile" init --model "$folder/$1/model.json" --machine "$folder/$1/machine.json"
    "$build/profiler/tccl-profile" run --model "$folder/$1/model.json" --cache "$folder/$1/cache" --gpus 0-7
}
mkdir "$folder/dual" "$folder/apart"
cp "$models/dual-8gpu.json" "$folder/dual/model.json"
python3 - "$models/dual-8gpu.json" "$folder/apart/model.json" <<'APART'
import json, sys
with open(sys.argv[1]) as file:
    model = json.load(file)
model["machine"]["nics"][1]["fabric"] = "ib9"
with open(sys.argv[2], "w") as file:
    json.dump(model, file)
APART
profile dual
profile apart
max_rings=auto
own_cluster --nodes 4 --tccl-conf MaxRings=8 --profile "$folder/dual" --profile "$folder/apart"
cp "$folder/dual/model.json" "$cluster/profiles/0/"
cp "$folder/apart/model.json" "$cluster/profiles/1/"
rm -rf "$folder"

rings() { # how many each node of the ring has
    values TCCL_RING | grep -o '\[[^]]*\]' | while read -r chains; do tr -dc '|\n' <<<"$chains" | wc -m; done | sort -u
}

echo "--- two nodes"
srun_show -w n1,n2 -N2 --gpus-per-node=8 --ntasks-per-node=1 --tccl=on
applied 2
as_solved 0 n{1..2}:0-7
all_have TCCL_GBPS 23.65
n=$(rings)
[ "$n" -gt 1 ] || fail "rings: $n"
says "tccl: $n rings of 2 nodes, 16 GPUs: 23.7 GB/s (NCCL's own choice: *"
recorded "$(job_of)" 0 rings "$n"
recorded "$(job_of)" 0 fewer_rings ""
equal "ring in the record" "$(record "$(job_of)" 0 ring)" "$(values TCCL_RING)"
matches "the drawing" "$(admin tcclacct ring "$(job_of)")" "*$n rings at once*ring 1: mlx5_*ring $n: mlx5_*"
equal "its JSON" "$(admin tcclacct ring --json "$(job_of)" | python3 -c 'import json, sys; ring = json.load(sys.stdin)["ring"]; print(ring["rings"], {len(chains) for chains in ring["sets"]})')" "$n {$n}"

echo "--- one node"
srun_show -w n1 -N1 --gpus=8 --tccl=on
applied 1
as_solved 0 n1:0-7
says "tccl: $(rings) rings of 8 GPUs: *"
recorded "$(job_of)" 0 rings "$(rings)"

echo "--- a second NIC that meets nobody"
srun_show -w n1,n2,n3 -N3 --gpus-per-node=8 --ntasks-per-node=1 --tccl=on
equal "tasks" "$(tasks)" 3
case $(values TCCL_STATE) in
applied)
    recorded "$(job_of)" 0 rings "$(rings)"
    matches "values of Rings, FewerRings" "$(record "$(job_of)" 0 rings) $(record "$(job_of)" 0 fewer_rings)" "[1-8] ?*"
    ;;
*) matches "the reason" "$(values TCCL_REASON)" "NCCL's own *" ;;
esac
