#!/bin/bash
# The user's own NCCL_* settings, in the environment or in nccl.conf: never overruled. What they leave
# free is still as planned; else NCCL goes on as alone, and one line says why.
# level: all
. "$(dirname "${BASH_SOURCE[0]}")/shim.sh"

bounces="dual-8gpu:0,1=0 -m0> 1 -m1> 0"
direct="dual-8gpu:0,2=0 -w> 2 -w> 0"

still() { # PLAN SETTING...: as planned all the same
    step "$*"
    local plan=$1 options=()
    shift
    mapfile -t options < <(printf -- '--set\n%s\n' "$@")
    make_plans "$plan"
    run_planned dual-8gpu --gpus "${plan:10:3}" "${options[@]}"
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
aside NCCL_COMM_ID=127.0.0.1:$((20000 + $$ % 10000)) "$direct" # as all communicators have the same id
still "$bounces" NCCL_P2P_LEVEL=PXB NCCL_ALGO=Ring NCCL_COLLNET_ENABLE=0 NCCL_DEBUG=VERSION NCCL_MIN_NCHANNELS=4
still "$bounces" NCCL_IB_HCA=mlx5_0 NCCL_NET_GDR_LEVEL=LOC NCCL_MAX_NCHANNELS=1 NCCL_PROTO=Simple
still "$direct" NCCL_ALGO=Ring,Tree NCCL_P2P_DISABLE=0

step "one rank has a setting that the others don't have"
make_plans "$direct"
as_alone dual-8gpu --gpus 0,2 --at 1:NCCL_P2P_LEVEL=LOC
said WARN

conf_aside() { # LINE PLAN: the user's nccl.conf has that line among others
    step "nccl.conf: $1, $2"
    printf '%s\n' "# NCCL_ALGO=Ring" "" "NCCL_IB_TIMEOUT=20" "$1" >"$work/${1%%=*}.conf"
    make_plans "$2"
    as_alone dual-8gpu --gpus "${2:10:3}" --set "NCCL_CONF_FILE=$work/${1%%=*}.conf"
    said "WARN.*${1%%=*}"
}
conf_aside NCCL_P2P_DISABLE=1 "$direct"
conf_aside "NCCL_GRAPH_FILE=$work/graph.xml" "$bounces"
conf_aside "NCCL_TOPO_FILE=$work/topo.xml" "$bounces"
printf '%s\n' "#NCCL_P2P_DISABLE=1" "# NCCL_GRAPH_FILE=/none" "XNCCL_ALGO=Tree" "NCCL_MIN_NCHANNELS=4" "no value" "NCCL_IB_TIMEOUT" >"$work/nccl.conf"
still "$direct" "NCCL_CONF_FILE=$work/nccl.conf"
still "$direct" "NCCL_CONF_FILE=$work/none.conf"

ports=("dual-8gpu:0,1=mlx5_0 -g> 1 -m0> 0 -g> mlx5_0" "dual-8gpu:0,1=mlx5_0 -g> 1 -m0> 0 -g> mlx5_0")
step "no GPUDirect for the user, GPUDirect in the plan"
make_plans "${ports[@]}"
as_alone dual-8gpu --gpus 0,1 --nodes 2 --set NCCL_NET_GDR_LEVEL=LOC
said "WARN.*NCCL_NET_GDR_LEVEL"
step "sockets only"
as_alone dual-8gpu --gpus 0,1 --nodes 2 --set NCCL_IB_DISABLE=1
said "WARN.*NCCL_IB_DISABLE"
