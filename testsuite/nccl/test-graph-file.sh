#!/bin/bash
# A ring imposed by NCCL_GRAPH_FILE: on one node; on two nodes with different chains and NICs; and
# a node without a file beside one that has one.
# level: all
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

"$here/write-graph" "$machines/amd-4gpu.json" 0,2,1,3 >"$work/one.xml"
run_ring "$work/rings" amd-4gpu --graph "$work/one.xml"
look "$work/rings" '
for order in orders():
    expect("the imposed ring", order, [0, 2, 1, 3])
expect("transports", {kind for ring in kinds() for kind in ring}, {"SHM"})'

"$here/write-graph" "$machines/dual-8gpu.json" 0,2,3,1 0 0 >"$work/first.xml"
"$here/write-graph" "$machines/dual-8gpu.json" 3,1,2,0 1 0 >"$work/second.xml"
run_ring "$work/rings" dual-8gpu --gpus 0-3 --nodes 2 --graph "$work/first.xml" --graph "$work/second.xml"
look "$work/rings" '
for ring in comms["comm 0"]["channels"]:
    expect("two chains", ring["ranks"], [0, 2, 3, 1, 7, 5, 6, 4])
    leaving = ring["edges"][3]
    expect("the exit of the first", leaving["send"]["nic"], 0)
    expect("the entry of the second", leaving["receive"]["nic"], 1)'

"$here/write-graph" "$machines/amd-4gpu.json" 1,0,2,3 0 0 >"$work/half.xml"
run_ring "$work/rings" amd-4gpu --nodes 2 --graph - --graph "$work/half.xml"
look "$work/rings" '
for order in orders():
    second = [rank - 4 for rank in order if rank > 3]
    expect("the chain of the node with a file", second, [1, 0, 2, 3])'
