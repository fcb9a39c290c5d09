#!/bin/bash
# A node's slot trains badly, or a GPU falls off the bus, after the profile was measured: the next step is planned with what is left, all
# of its nodes alike, and its line, its record and tccld's log say so; when the link is back, so is the ring. One that
# comes and goes fills no log. What can't be read is no fault.
# cluster: own
# level: all
. "$(dirname "$0")/lib.sh"

own_cluster --nodes 2
sys=$work/machine/sys
TCCL_SOURCES=$root "$root/testsuite/nccl/describe-machine" "$models/amd-4gpu.json" "$work/machine"
busid() { # GPU
    python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["machine"]["gpus"][int(sys.argv[2])]["busid"])' "$models/amd-4gpu.json" "$1"
}
lanes() { # GPU LANES: of it and of the port above it
    local device
    device=$(readlink -f "$sys/bus/pci/devices/$(busid "$1")")
    echo "$2" | tee "$device/current_link_width" >"$(dirname "$device")/current_link_width"
}
mini stop-tccld n1
unshare --mount sh -c 'mount --bind "$1" /sys && exec "$2" start-tccld n1' - "$sys" "$root/contrib/minicluster"
log=$cluster/log/tccld@n1.out
step() { # SRUN-OPTION...
    srun_show -w n1,n2 -N2 --gpus-per-node=4 --ntasks-per-node=1 --tccl=on "$@"
}
checked() { # LEVEL SHELL-PATTERN: by tccl-check, on the machine as tccld sees it
    unshare --mount sh -c 'mount --bind "$1" /sys && exec "$2" run -- tccl-check --node n1 --timeout 60 --only profile' - \
        "$sys" "$root/contrib/minicluster" >"$work/check" || true
    item profile "$@"
}
said() { # TIMES TEXT: in n1's log
    [ "$(grep -cF -- "$2" "$log")" -ge "$1" ]
}
worse="n1: link of GPU 1 ($(busid 1)) is x4, not x16 as measured"
look() { # now, and not within 30 s
    kill -HUP "$(cat "$cluster/nodes/n1/tccld.sock.lock")"
}
degraded() { # such a link is looked at twice
    look
    step -w n1 -N1
    [ "$(record "$(job_of)" 0 degraded)" = "$1" ]
}

echo "--- healthy"
step
has_ring 2
healthy=$(values TCCL_GBPS)
recorded "$(job_of)" 0 degraded ""

echo "--- GPU 1 at x4"
lanes 1 4
eventually "a plan for the link" degraded "$worse"
step
recorded "$(job_of)" 0 degraded "$worse"
says "tccl: nothing to do: NCCL's own choice is kept *; $worse"
checked warn "*${worse#n1: }: rings are planned for what is left; *"
said 1 "rings are planned anew: ${worse#n1: }" || fail "the log doesn't say it"

echo "--- at x8"
lanes 1 8
eventually "a plan for the link" degraded "${worse/x4/x8}"
step
has_ring 2
says "tccl: *; ${worse/x4/x8}"
python3 -c 'import sys; sys.exit(not float(sys.argv[1]) < 0.8 * float(sys.argv[2]))' "$(values TCCL_GBPS)" "$healthy" ||
    fail "$(values TCCL_GBPS) GB/s are promised, $healthy on all lanes"
# What a fresh search finds on n1 as it is: the model's own capacities of that link halved.
python3 - "$models/amd-4gpu.json" >"$work/cut.json" <<'CUT'
import json, sys
with open(sys.argv[1]) as file:
    model = json.load(file)
cut = [resource for resource in model["resources"] if resource["name"] in ("g1 out", "g1 in")]
assert len(cut) == 2
for resource in cut:
    resource["gbps"] /= 2
json.dump(model, sys.stdout)
CUT
fresh=$("$build/pathfind/tccl-path" solve --rings auto --node "$work/cut.json=1:0-3" --node "$models/amd-4gpu.json=1:0-3" --json |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["reach_gbps"])')
python3 -c 'import sys; sys.exit(not float(sys.argv[1]) >= 0.95 * float(sys.argv[2]))' "$(values TCCL_GBPS)" "$fresh" ||
    fail "$(values TCCL_GBPS) GB/s, a fresh search finds $fresh"

echo "--- back again"
lanes 1 16
eventually "the old plan" degraded ""
step
has_ring 2
all_have TCCL_GBPS "$healthy"
recorded "$(job_of)" 0 degraded ""

echo "--- it comes and goes"
lines=$(grep -c "rings are planned anew" "$log")
(while sleep 0.6; do lanes 1 4; sleep 0.4; lanes 1 16; done) &
flapping=$!
for ((i = 0; i < 16; i++)); do
    look
    step
    case $(values TCCL_STATE) in planned | left) ;; *) fail "no plan: $(values TCCL_REASON)" ;; esac
done
kill "$flapping"
wait "$flapping" || true
lanes 1 16
equal "lines about it, which was said before" "$(grep -c "rings are planned anew" "$log")" "$lines"
eventually "the old plan" degraded ""
step
all_have TCCL_GBPS "$healthy"

echo "--- GPU 3 is gone"
mv "$sys/bus/pci/devices/$(busid 3)" "$work/gone"
gone() {
    look
    step
    [ "$(values TCCL_STATE)" = failed ]
}
eventually "no plan with it" gone
checked fail "GPU 3 ($(busid 3)) is not on the PCI bus any more: *"
no_ring 2 "n1: GPU $(busid 3) is not on the PCI bus any more: *"
srun_show -w n1,n2 -N2 --gpus-per-node=3 --ntasks-per-node=1 --tccl=on
[ "$(values TCCL_STATE)" != failed ] || fail "no plan without it: $(values TCCL_REASON)"
mv "$work/gone" "$sys/bus/pci/devices/$(busid 3)"

echo "--- nothing can be read"
back() {
    look
    step
    [ "$(values TCCL_STATE)" = planned ]
}
eventually "a plan again" back
lanes 1 garbage
chmod 0 "$(readlink -f "$sys/bus/pci/devices/$(busid 2)")/current_link_width"
for ((i = 0; i < 4; i++)); do
    reloads=$(grep -c "configuration reloaded" "$log")
    look
    eventually "a look" said $((reloads + 1)) "configuration reloaded"
    step
    has_ring 2
    all_have TCCL_GBPS "$healthy"
done
