#!/bin/bash
# The user's own NCCL_* settings, in the environment or in nccl.conf: never overruled. What they leave
# free is still as planned; else NCCL goes on as alone, and one line says why.
. "$(dirname "${BASH_SOURCE[0]}")/shim.sh"

bounces="dual-8gpu:0,1=0 -m0> 1 -m1> 0"
direct="dual-8gpu:0,2=0 -w> 2 -w> 0"

still() { # SETTING PLAN: as planned all the same
    step "$1, $2"
    make_plans "$2"
    run_planned dual-8gpu --gpus "${2:10:3}" --set "$1"
    as_planned
    no_warning
}

aside() { # SETTING PLAN
    step "$1, $2"
    make_plans "$2"
    as_alone dual-8gpu --gpus "${2:10:3}" --set "$1"
    said "WARN.*${1%%=*}"
}

"$here/write-graph" "$machines/dual-8gpu.json" 1,0 >"$work/graph.xml"
"$here/write-graph" "$machines/dual-8gpu.json" 2,0 >"$work/graph2.xml"
echo '<system version="1"></system>' >"$work/topo.xml"
aside "NCCL_GRAPH_FILE=$work/graph.xml" "$bounces"
aside "NCCL_TOPO_FILE=$work/topo.xml" "$bounces"
aside NCCL_P2P_LEVEL=LOC "$direct"
aside NCCL_P2P_LEVEL=SYS "$bounces"
aside NCCL_P2P_DISABLE=1 "$direct"
aside NCCL_SHM_DISABLE=1 "$bounces"
aside NCCL_ALGO=Tree "$bounces"
aside NCCL_COLLNET_ENABLE=1 "$bounces"
still NCCL_P2P_LEVEL=PXB "$bounces"
still NCCL_ALGO=Ring "$bounces"
still NCCL_ALGO=Ring,Tree "$direct"
still NCCL_COLLNET_ENABLE=0 "$bounces"
still NCCL_P2P_DISABLE=0 "$direct"
still NCCL_DEBUG=VERSION "$bounces"
still NCCL_IB_HCA=mlx5_0 "$bounces"
still NCCL_NET_GDR_LEVEL=LOC "$bounces"
still NCCL_MIN_NCHANNELS=4 "$bounces"
still NCCL_MAX_NCHANNELS=1 "$bounces"
still NCCL_PROTO=Simple "$bounces"

step "one rank has a setting that the others don't have"
make_plans "$direct"
as_alone dual-8gpu --gpus 0,2 --at 1:NCCL_P2P_LEVEL=LOC
said WARN

step "nccl.conf"
echo NCCL_P2P_DISABLE=1 >"$work/nccl.conf"
make_plans "$direct"
as_alone dual-8gpu --gpus 0,2 --set "NCCL_CONF_FILE=$work/nccl.conf"
said "WARN.*NCCL_P2P_DISABLE"

ports=("dual-8gpu:0,1=mlx5_0 -g> 1 -m0> 0 -g> mlx5_0" "dual-8gpu:0,1=mlx5_0 -g> 1 -m0> 0 -g> mlx5_0")
step "no GPUDirect for the user, GPUDirect in the plan"
make_plans "${ports[@]}"
as_alone dual-8gpu --gpus 0,1 --nodes 2 --set NCCL_NET_GDR_LEVEL=LOC
said "WARN.*NCCL_NET_GDR_LEVEL"
step "sockets only"
as_alone dual-8gpu --gpus 0,1 --nodes 2 --set NCCL_IB_DISABLE=1
said "WARN.*NCCL_IB_DISABLE"
