#!/bin/bash
# Several rings at once: two nodes with two NICs, and one of them alone, get as many rings as their profile says are best, which the
# tasks, the record and the drawing have alike; a node whose second NIC is on a network of its own shrinks the set, and the record says so.
# A step beside another one that has several rings is planned beside all of these, also by a tccld that was killed meanwhile.
# cluster: own
# level: quick
. "$(dirname "$0")/lib.sh"

folder=$(mktemp -d --tmpdir tccl-ring-sets-XXXXXX)
trap 'rm -rf "$folder"' EXIT
profile() { # NAME: of the GPU sets that steps here have
    "$build/profiler/tccl-profile" init --model "$folder/$1/model.json" --machine "$folder/$1/machine.json"
    "$build/profiler/tccl-profile" run --model "$folder/$1/model.json" --cache "$folder/$1/cache" --gpus "0-7 0-1,4-5 2-3,6-7"
}
mkdir "$folder/dual" "$folder/apart"
# Writes to the other socket are slower than lopsided-8gpu's, so that several rings are worth it on a part of a node, too.
sed -E '/to memory/s/"gbps": 19(\.0)?,/"gbps": 14,/' "$models/lopsided-8gpu.json" >"$folder/dual/model.json"
! cmp -s "$folder/dual/model.json" "$models/lopsided-8gpu.json" || fail "the model has no such writes"
python3 - "$folder/dual/model.json" "$folder/apart/model.json" <<'APART'
import json, sys
with open(sys.argv[1]) as file:
    model = json.load(file)
model["machine"]["nics"][1]["fabric"] = "ib9"
with open(sys.argv[2], "w") as file:
    json.dump(model, file)
APART
profile dual
profile apart
own_cluster --nodes 4 --profile "$folder/dual" --profile "$folder/apart"
cp "$folder/dual/model.json" "$cluster/profiles/0/"
cp "$folder/apart/model.json" "$cluster/profiles/1/"
rm -rf "$folder"

rings() { # how many each node of the ring has
    values TCCL_RING | grep -o '\[[^]]*\]' | while read -r chains; do tr -dc '|\n' <<<"$chains" | wc -m; done | sort -u
}

echo "--- two nodes"
srun_show -w n1,n2 -N2 --gpus-per-node=8 --ntasks-per-node=1 --tccl=on
has_ring 2
as_solved 0 n{1..2}:0-7
all_have TCCL_GBPS 23.09 # of 23.65
n=$(rings)
[ "$n" -gt 1 ] || fail "rings: $n"
says "tccl: $n rings of 2 nodes, 16 GPUs: 23.1 GB/s (NCCL's own choice: *"
recorded "$(job_of)" 0 rings "$n"
recorded "$(job_of)" 0 fewer_rings ""
equal "ring in the record" "$(record "$(job_of)" 0 ring)" "$(values TCCL_RING)"
matches "the drawing" "$(admin tcclacct ring "$(job_of)")" "*, $n rings of *, together *ring 1: mlx5_*ring $n: mlx5_*"
equal "its JSON" "$(admin tcclacct ring --json "$(job_of)" | python3 -c 'import json, sys; ring = json.load(sys.stdin)["ring"]; print(ring["rings"], {len(chains) for chains in ring["chains"]})')" "$n {$n}"

echo "--- one node"
srun_show -w n1 -N1 --gpus=8 --tccl=on
has_ring 1
as_solved 0 n1:0-7
says "tccl: $(rings) rings of 8 GPUs: *"
recorded "$(job_of)" 0 rings "$(rings)"

echo "--- beside several rings, of a step whose tccld was killed meanwhile"
chmod 1777 "$work"
one=(-w n1 -N1 -n1)
holders=()
for i in 0 1 2 3; do # two GPUs each, until they are told to end: below one switch, as their lines in gres.conf say
    user srun "${one[@]}" --gpus=2 --tccl=off sh -c 'echo ${SLURM_STEP_GPUS:-$SLURM_JOB_GPUS} >'"$work/gpus.$i; until [ -e $work/end.$i ]; do sleep 0.1; done" &
    holders[i]=$!
    eventually "holder $i" test -s "$work/gpus.$i"
done
end() { # GPUS: of the holder that has them
    local i
    i=$(grep -lx "$1" "$work"/gpus.*) || fail "nobody has GPUs $1: $(cat "$work"/gpus.*)"
    i=${i##*.}
    touch "$work/end.$i"
    wait "${holders[i]}" || fail "the holder of GPUs $1"
}
end 0,1
end 4,5
# Two switches that are its own: several rings on a part of a node, that leave room.
user srun "${one[@]}" --gpus=4 --tccl=on sh -c 'env | sed -n "s/^TCCL_RING=//p" >'"$work"'/ring; until [ -e '"$work"'/over ]; do sleep 0.1; done' 2>"$work/first.err" &
first=$!
eventually "the first step" test -s "$work/ring"
chains=$(sed 's/^n1\[//; s/\].*//' "$work/ring")
case $chains in *"|"*) ;; *) fail "the first step has a single ring: $chains" ;; esac
written() { cat "$cluster"/nodes/n1/run/*/plan | grep -F '"rings"' | grep -F ' | '; }
eventually "the step is written down" written
known=$(written)
kill_tccld n1
mini start-tccld n1
end 2,3
end 6,7
srun_show -w n1 -N1 --gpus=4 --tccl=on
recorded "$(job_of)" 0 neighbours 1
equal "the first step, written down again" "$(written)" "$known"
touch "$work/over"
wait $first || fail "the first step: $(cat "$work/first.err")"
recorded $(($(job_of) - 1)) 0 rings "$(tr -dc '|\n' <<<"$chains" | wc -m)"

echo "--- a second NIC that meets nobody"
srun_show -w n1,n2,n3 -N3 --gpus-per-node=8 --ntasks-per-node=1 --tccl=on
equal "tasks" "$(tasks)" 3
case $(values TCCL_STATE) in
planned)
    recorded "$(job_of)" 0 rings "$(rings)"
    [ "$(rings)" -le "$n" ] || fail "$(rings) rings, with both NICs $n"
    [ "$(rings)" = "$n" ] || matches "FewerRings" "$(record "$(job_of)" 0 fewer_rings)" "?*" # as many fit through one NIC, too
    ;;
*) matches "the reason" "$(values TCCL_REASON)" "NCCL's own *" ;;
esac

echo "--- a NIC without a link"
classes=$work/class # in place of /sys/class, for n2's tccld
mkdir -p "$classes/net" "$classes/infiniband"/mlx5_{0,1}/ports/1
ln -s ../../devices/0000:1c:00.0 "$classes/infiniband/mlx5_0/device"
ln -s ../../devices/0000:3f:00.0 "$classes/infiniband/mlx5_1/device"
echo "4: ACTIVE" >"$classes/infiniband/mlx5_0/ports/1/state"
links() { # STATE: of mlx5_1, from here on
    echo "$1" >"$classes/infiniband/mlx5_1/ports/1/state"
    mini stop-tccld n2
    unshare --mount sh -c 'mount --bind "$1" /sys/class && exec "$2" start-tccld n2' - "$classes" "$root/contrib/minicluster"
}
links "1: DOWN"
srun_show -w n1,n2 -N2 --gpus-per-node=8 --ntasks-per-node=1 --tccl=on
equal "tasks" "$(tasks)" 2
echo "its ring: $(values TCCL_RING)"
case $(values TCCL_RING) in *"n2["*mlx5_1*) fail "n2 is to use mlx5_1, which has no link" ;; esac
has_ring 2
recorded "$(job_of)" 0 fewer_rings "n2: mlx5_1 has no link"
says "tccl: * of 2 nodes, 16 GPUs: * GB/s (NCCL*), by a model" # NCCL's own are by the other NIC
links "4: ACTIVE"
srun_show -w n1,n2 -N2 --gpus-per-node=8 --ntasks-per-node=1 --tccl=on
has_ring 2
all_have TCCL_GBPS 23.09 # of 23.65
