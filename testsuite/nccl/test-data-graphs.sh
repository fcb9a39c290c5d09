#!/bin/bash
# CUDA graphs: collectives are captured, as the first of a communicator or after others, alone, in groups, of two communicators at once,
# and launched many times, others between them; the data are those of NCCL alone, and so is the number of nodes: the shim adds nothing
# to what is captured, steered or not, while it measures what is not. One node, one process, two nodes, and with other versions of NCCL
# that are here. In cuMem mode.
# level: all
. "$(dirname "${BASH_SOURCE[0]}")/tccld.sh"
. "$here/data.sh"
collectives=(--check --everywhere)

add "$reducing" "4 40000 1000000" "i32 f32"
add "$copying" "4 1000000" "f16"

graphs() { # WHAT MODEL OPTION... -- PROBE-OPTION...: planned and alone
    step "$1"
    run_planned "${@:2}" "${collectives[@]}"
    run_alone "${@:2}" "${collectives[@]}"
    right "$work/rings" "$alone"
    same_nodes
}

# Of each graph. NCCL adds some of its own where a rank is next to a NIC, and where that is, is the plan's affair, as whether it is by a ring or a
# tree: of two nodes there are no other numbers than by NCCL alone.
same_nodes() {
    python3 - "$work/rings" "$alone" <<'PYTHON' || { show_log; fail "$what: the graphs are not as by NCCL alone"; }
import json
import sys
graphs = [sorted((call["comm"], call["bytes"], call["rank"], call["result"], call["nodes"]) for call in json.load(open(path))["calls"]
                 if call["call"] == "capture") for path in sys.argv[1:]]
print(f"{len(graphs[0])} graphs, {sum(graph[-1] for graph in graphs[0])} nodes")
planned, alone = graphs
good = {(graph[-2], graph[-1]) for graph in planned} <= {("no error", graph[-1]) for graph in alone}
if len(json.load(open(sys.argv[1]))["log"]) == 1:
    good = good and planned == alone
sys.exit(not (planned and good))
PYTHON
}

make_plans "dual-8gpu:0-3=0 -m0> 1 -w> 3 -m0> 2 -w> 0"
graphs "NCCL connects while it is captured" dual-8gpu --gpus 0-3 -- --replays 3
as_planned
graphs "collectives between launches" dual-8gpu --gpus 0-3 -- --replays 3 --times 1
as_planned
graphs "groups" dual-8gpu --gpus 0-3 -- --replays 3 --times 1 --group --coalesced 3
as_planned
graphs "several communicators in a graph" dual-8gpu --gpus 0-3 -- --replays 3 --comms 2 --subset 0,2 --subset 1,3
as_planned
graphs "one process" dual-8gpu --gpus 0-3 --processes 1 -- --replays 3 --times 1
as_planned
make_plans --rings auto amd-4gpu
graphs "several rings" amd-4gpu -- --replays 3 --times 1
said "built as planned" 1
make_plans "epyc-8gpu:0,1=mlx5_0 -m0> 1 -m0> 0 -m0> mlx5_0" "epyc-8gpu:0,1=mlx5_0 -m0> 1 -m0> 0 -m0> mlx5_0"
graphs "two nodes" epyc-8gpu --gpus 0,1 --nodes 2 -- --replays 3 --times 1
as_planned

step "left alone"
make_plans "intel-4gpu:0-3=0 -w> 2 -m2> 1 -w> 3 -m0> 0"
as_alone intel-4gpu --hidden -- --replays 2 --times 1 "${collectives[@]}"
right "$work/rings" "$alone" --every-bit
same_nodes

step "launched often, while others are measured"
collectives=(--check --collective all-reduce:8388608:f32 --collective all-gather:8388608:i32)
joined amd-4gpu:0-2 -- amd-4gpu --gpus 0-2 -- --times 1 --replays 100 "${collectives[@]}"
run_alone amd-4gpu --gpus 0-2 -- --times 1 --replays 100 "${collectives[@]}"
built yes
right "$work/rings" "$alone"
same_nodes
said "of 3 ranks: 2 collectives were captured into CUDA graphs" 1
python3 - "$step_folder/record.json" <<'PYTHON' || fail "$what: the record"
import json
import sys
record = json.load(open(sys.argv[1]))[0]
print({name: record.get(name) for name in ("samples", "achieved_gbps", "sent_bytes", "captured", "sent_share")})
# Of each kind the first two, and one before each launch.
sent = 102 * (8 << 20) * 2
sys.exit(not (record["samples"] >= 4 and record["achieved_gbps"] > 0 and abs(record["sent_bytes"] - sent) < 4096 and
              record["captured"] == 2 and not record["sent_share"]))
PYTHON

for version in $([ -n "${TCCL_NCCL:-}" ] || "$here/get-nccl" --list); do
    folder=$("$here/get-nccl" --built "$version") || continue
    [ -e "$folder/source" ] || continue
    step "NCCL $version"
    run_ring "$work/rings" amd-4gpu --gpus 0-2 --nccl "$folder" -- --check --everywhere --comms 2 --replays 3 --times 1 \
        --collective all-reduce:1000000:f32 --collective all-gather:4000:f16 --collective all-to-all:100000
    right
done
