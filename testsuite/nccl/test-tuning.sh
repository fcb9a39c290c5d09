#!/bin/bash
# NCCL's table of algorithms and protocols with a plan is that of NCCL alone, so it picks the same for each size, or the
# planned ring in place of a tree; large all-reduces use the ring. With several rings, too, which have more channels, each with less. On one node, on two, and with a plan on one of two nodes only: that changes nothing.
# NCCL launches what it picks. In cuMem mode. TCCL_ALL=1: all models on 1, 2 and 4
# nodes, with one ring and with several, which takes hours. TCCL_CASES="amd-4gpu:2 intel-4gpu:1:auto …": these.
# level: all
. "$(dirname "${BASH_SOURCE[0]}")/shim.sh"

readonly sizes=(1024 131072 67108864)

# The tables of the last two runs; both picked a ring from some size on.
same_table() { # MODEL RINGS
    python3 - "$here" "$work" "$1" "${sizes[*]}" "$2" <<'PYTHON' || { show_log; fail "${what:-}: not NCCL's own table"; }
import json
import sys
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import tuning
alone, planned = (tuning.read(f"{sys.argv[2]}/{name}/node0-process0.log") for name in ["alone-log", "planned-log"])
with open(f"{sys.argv[1]}/../machines/{sys.argv[3]}.json") as file:
    sm = json.load(file)["machine"]["gpus"][0]["sm"]
bad = []
# Of several rings each has channels of its own, which are as fast together as NCCL's own. NCCL's trees have as many channels, each with
# one of the speeds that its search tries, so they may be faster or slower than alone; but it never picks them for sizes for which it doesn't alone.
several = sys.argv[5] != "1"
for name in ["ranks", "nodes"] + ["channels"] * (not several):
    if getattr(alone, name) != getattr(planned, name):
        bad.append(f"{name}: {getattr(planned, name)}, not {getattr(alone, name)}")
# Sends and receives: what goes to one peer is as alone, but 2 in place of 1 may go to one on another node. With several rings all peers share the next
# power of two.
if planned.p2p_per_peer != alone.p2p_per_peer and not (several and planned.nodes > 1 and planned.p2p_per_peer == 2):
    bad.append(f"{planned.p2p_per_peer} channels to a peer, not {alone.p2p_per_peer}")
if planned.p2p != (1 << (planned.channels - 1).bit_length() if several else alone.p2p):
    bad.append(f"{planned.p2p} channels to all peers, {planned.channels} of rings, alone {alone.p2p}")
print(f"sends and receives: {planned.p2p} channels, {planned.p2p_per_peer} to a peer; alone {alone.p2p}, {alone.p2p_per_peer}")
# Broadcast and Reduce have the ring alone, and less latency where its channels are all alike.
# Of a node with a topology file of the shim's NCCL's tree may be nominally slower: the ring is used from smaller sizes on then.
for name in ["AllReduce", "AllGather", "ReduceScatter"]:
    for key, (latency, bandwidth) in alone.table[name].items():
        found = planned.table[name][key]
        if found[0] != latency or (found[1] > bandwidth and not several) or (key[0] != "Tree" and found[1] != bandwidth):
            bad.append(f"{name} {key}: {found}, not {(latency, bandwidth)}")
for kind, graph in alone.graphs.items():
    found = planned.graphs[kind]
    if several:
        if kind == "Ring" and abs(found["channels"] * found["intra"] / graph["channels"] / graph["intra"] - 1) > 0.01:
            bad.append(f"{kind}: {found['channels']} x {found['intra']}, not {graph['channels']} x {graph['intra']}")
        continue
    bad += [f"{kind}: {key} {found[key]}, not {graph[key]}" for key in ["channels", "intra", "inter"]
            if found[key] > graph[key] or (found[key] != graph[key] and (kind, key) not in [("Tree", "intra"), ("Tree", "inter")])]
# LL128 is for NVLink.
if {"NVL", "NVB"} & set(planned.graphs["Ring"]["types"]) or planned.time("Ring", "LL128", 1 << 20):
    bad.append(f"the ring's types are {planned.graphs['Ring']['types']}")
picks, own = planned.picks(sm), alone.picks(sm)
bad += [f"{tuning.human(size)}: {picks[size]}, not {own[size]}" for size in picks if picks[size] != own[size] and picks[size][0] != "Ring"]
bad += [f"{tuning.human(size)}: {picks[size]}, not the ring" for size in picks if size >= 64 << 20 and picks[size][0] != "Ring"]
# What NCCL launched, with and without a plan.
for name, expected in [("own", own), ("rings", picks)]:
    with open(f"{sys.argv[2]}/{name}") as file:
        launched = [row[1:] for row in json.load(file)["launched"] if row[0] == "AllReduce"]
    expected = [[size, expected[size][0].upper(), expected[size][1].upper()] for size in map(int, sys.argv[4].split())]
    if launched != expected:
        bad.append(f"{name}: launched {launched}, not {expected}")
print(tuning.ranges(planned, sm))
if bad:
    sys.exit("\n".join(bad))
PYTHON
}

# Launches between nodes are refused, once for each rank and size.
quiet() {
    "$@" 2> >(grep -v "a kernel launch refused" >&2)
}

compare() { # MODEL NODES [PLANNED [RINGS]]: with a plan on so many of the nodes, of one ring or as --rings of tccl-path has it
    local model=$1 nodes=$2 planned=${3:-$2} rings=${4:-1} list=() i
    step "$model on $nodes nodes${3:+, a plan on $3}${4:+, rings: $4}"
    for ((i = 0; i < nodes; i++)); do list+=("$model"); done
    make_plans --rings "$rings" "${list[@]}"
    for ((i = planned; i < nodes; i++)); do plans[i]=-; done
    rm -rf "$work"/*-log
    quiet run_ring "$work/own" "$model" --nodes "$nodes" --log "$work/alone-log" -- "${sizes[@]/#/--collective=all-reduce:}"
    quiet run_planned "$model" --nodes "$nodes" --log "$work/planned-log" -- "${sizes[@]/#/--collective=all-reduce:}"
    said "TCCL INFO .*: rings? .*model" "$planned"
    same_table "$model" "$rings"
}

if [ -n "${TCCL_CASES:-}" ]; then
    for one in $TCCL_CASES; do
        IFS=: read -r model nodes rings <<<"$one"
        compare "$model" "$nodes" "$nodes" "${rings:-1}"
    done
    exit 0
elif [ -n "${TCCL_ALL:-}" ]; then
    for model in "$machines"/*.json; do
        model=$(basename "$model" .json)
        for nodes in 1 2 4; do
            compare "$model" "$nodes"
            compare "$model" "$nodes" "$nodes" auto
        done
    done
    compare epyc-8gpu 4 3
else
    compare amd-4gpu 1
    compare intel-4gpu 2
    compare amd-4gpu 2 2 auto
    compare epyc-8gpu 4 4 auto
fi
compare epyc-8gpu 2 1
