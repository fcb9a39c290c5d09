#!/bin/bash
# The numbers that the shim finds for GPUs and NICs, also without NCCL's log, are CUDA's, NVML's and NCCL's.
# level: all
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

show=$TCCL_BUILD/testsuite/nccl/show-devices
[ -x "$show" ] || { echo "skipped: the build has no show-devices"; exit 77; }

lay_out() { # MODEL-FILE [OPTION]...: the machine that the following sees
    rm -rf "$work/machine"
    "$here/describe-machine" "$1" "$work/machine" "${@:2}"
}

see() { # WORD...: what show-devices prints there
    LD_LIBRARY_PATH=$rig/lib "$here/on-machine" "$work/machine" -- "$show" "$@"
}

expect() { # WHAT EXPECTED WORD...
    local what=$1 expected=$2 got
    shift 2
    got=$(see "$@") || fail "$what: show-devices $*"
    [ "$got" = "$expected" ] || fail "$what: \"$got\", not \"$expected\""
    echo "$what: ${got//$'\n'/, }"
}

# ---- GPUs ----
amd=$machines/amd-4gpu.json # 01:00.0 41:00.0 44:00.0 61:00.0
lay_out "$amd"
expect "no CUDA" "CUDA can't be asked for the thread's device: it has no context, and no CUDA runtime is loaded" 0 current
expect "the first one, if a program chooses none" 0000:01:00.0 0 cuda current
expect "each one" $'0000:44:00.0\n0000:01:00.0\n0000:61:00.0' 0 cuda set 2 current set 0 current set 3 current
expect "without choosing it" $'0000:41:00.0\n0000:01:00.0' 0 cuda device 1 current
expect "one that is not there" "CUDA does not tell the bus id of device 4" 0 cuda device 4
expect "NVML's index" $'0\n3\n2' 0 nvml 0000:01:00.0 nvml 00000000:61:00.0 nvml 44:00.0
expect "a GPU that NVML does not know" "NVML does not know the GPU 0000:02:00.0" 0 nvml 0000:02:00.0
CUDA_VISIBLE_DEVICES=3,0 expect "visible devices in another order" $'0000:61:00.0\n0000:01:00.0\n3' \
    0 cuda current device 1 nvml 0000:61:00.0
CUDA_VISIBLE_DEVICES= expect "none visible" "CUDA does not tell the thread's device" 0 cuda current
uuids=$(awk '$1 == "gpu" && ($2 ~ /:44:/ || $2 ~ /:41:/) {print $5}' "$work/machine/devices" | tac | paste -sd,)
CUDA_VISIBLE_DEVICES=$uuids expect "by UUID" $'0000:44:00.0\n0000:41:00.0' 0 cuda current device 1
lay_out "$amd" --add "mig 1"
expect "one in MIG mode" $'0000:01:00.0\nthe GPU 0000:41:00.0 is cut into MIG instances' 0 cuda device 0 device 1
lay_out "$amd" --add "gpu 0000:44:00.0 9 80 GPU-twice the same again"
expect "one bus id twice" $'CUDA\'s devices 2 and 4 have the same bus id\n0000:41:00.0' 0 cuda device 2 device 1

# ---- NVLink ----
all=0000:01:00.0,0000:41:00.0,0000:44:00.0,0000:61:00.0
lay_out "$amd"
expect "no NVLink" none 0 nvlink $all
lay_out "$amd" --add "nvlink 0 1" --add "nvlink 0 1" --add "nvlink 2 3"
expect "pairs" "some 0-1 2-3" 0 nvlink $all
expect "of these, all" "all 0-1" 0 nvlink 44:00.0,61:00.0
expect "of these, none" none 0 nvlink 01:00.0,61:00.0
lay_out "$amd" --add "nvlink 0 switch" --add "nvlink 1 switch" --add "nvlink 3 switch"
expect "a switch" "some 0-1 0-3 1-3" 0 nvlink $all
expect "all at a switch" "all 0-1 0-2 1-2" 0 nvlink 01:00.0,41:00.0,61:00.0
expect "one GPU" none 0 nvlink 01:00.0

# ---- NICs ----
# As NCCL says in its log: "[0]mlx5_0:1/IB [1]…".
nccl_says() {
    "$here/run-ring" "$1" --gpus 0 --log "$work/log" --set NCCL_DEBUG_SUBSYS=INIT,NET "${@:2}" >"$work/rings" ||
        fail "run-ring $*"
    sed -n 's/.*NET\/IB : Using\(.*\) ; OOB.*/\1/p' "$work/log"/*.log | tr ' ' '\n' | sed -n 's/^\[\([0-9]*\)\]\([^:]*\):.*/\2 \1/p'
}

# A machine with NICs whose list is not in the order of PCI, and one that is not NCCL's.
python3 - "$machines/dual-8gpu.json" "$work/many-nics.json" <<'PYTHON'
import json, sys
model = json.load(open(sys.argv[1]))
nics = model["machine"]["nics"]
for name, busid, like in [("mlx5_10", "0000:1d:00.0", 0), ("irdma0", "0000:3f:00.0", 0), ("mlx5_2", "0000:16:00.0", 0)]:
    nics.append(dict(nics[like], name=name, busid=busid))
nics.reverse()
json.dump(model, open(sys.argv[2], "w"))
PYTHON
names=$(python3 -c 'import json, sys; print(*[nic["name"] for nic in json.load(open(sys.argv[1]))["machine"]["nics"]])' "$work/many-nics.json")
lay_out "$work/many-nics.json"
filters=("" mlx5 mlx5_1 =mlx5_1 ^mlx5_1 ^=mlx5_1,irdma0 mlx5_2:1,mlx5_0:2 mlx5_10,,mlx5_0 ^mlx5:7)
for filter in "${filters[@]}"; do
    options=()
    [ -z "$filter" ] || options=(--set "NCCL_IB_HCA=$filter")
    nccl_says "$work/many-nics.json" ${options[@]+"${options[@]}"} >"$work/said"
    [ -s "$work/said" ] || fail "NCCL_IB_HCA=$filter: NCCL does not say which NICs it uses"
    for name in $names; do
        expected=$(awk -v name="$name" '$1 == name {print $2}' "$work/said")
        NCCL_IB_HCA=$filter expect "NCCL_IB_HCA=$filter, $name" "${expected:-NCCL leaves out the NIC $name}" \
            22907 verbs nic "$name"
    done
done
expect "before 2.29.7 in the order of the list" $'0\n4' 22203 verbs nic mlx5_2 nic mlx5_0
expect "behind the real ones from 2.24 to 2.26" $'5\n9' 22501 verbs nic mlx5_2 nic mlx5_0
expect "not NCCL's own list" "libibverbs has listed no NICs in this process" 22907 nic mlx5_0
expect "an NCCL of the future" "this NCCL version's numbering of NICs is unknown" 29900 verbs nic mlx5_0
expect "an unknown NCCL" "this NCCL version's numbering of NICs is unknown" 0 verbs nic mlx5_0
NCCL_IB_HCA=mlx5_0:1:2 expect "rails" "NCCL_IB_HCA is not understood" 23007 verbs nic mlx5_0
NCCL_NET=Socket expect "sockets" "NCCL_NET is set: NCCL's numbering of NICs is unknown" 22907 verbs nic mlx5_0
NCCL_NET=ib NCCL_IB_DISABLE=0 NCCL_NET_PLUGIN=none expect "settings that change nothing" 1 22907 verbs nic mlx5_0
NCCL_NET_PLUGIN=x expect "a plugin" "NCCL_NET_PLUGIN is set: NCCL's numbering of NICs is unknown" 22907 verbs nic mlx5_0

nic=$work/machine/sys/class/infiniband/mlx5_0
echo "1: DOWN" >"$nic/ports/1/state"
expect "a port that is down" $'NCCL leaves out the NIC mlx5_0\n1\n2' 22907 verbs nic mlx5_0 nic mlx5_10 nic irdma0
echo "4: ACTIVE" >"$nic/ports/1/state"
cp -r "$nic/ports/1" "$nic/ports/2"
expect "two ports, which NCCL joins" "NCCL merges the ports of the NIC mlx5_0" 22203 verbs nic mlx5_1
rm -r "$nic/ports/2"
echo 0x1023 >"$nic/device/device"
expect "Data Direct" "the NIC mlx5_0 may have Data Direct" 22703 verbs nic mlx5_1
