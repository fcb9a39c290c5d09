#!/bin/bash
# What is left alone is as without the shim, in NCCL's cuMem mode and connected: beside a steered communicator subsets
# without a plan, ranks by themselves and split children have the transports, GPUDirect and tables of the same program
# without the shim, whichever is made first, and in a small /dev/shm.
# level: all
. "$(dirname "${BASH_SOURCE[0]}")/shim.sh"

# Communicators but the steered one edge by edge; of the tables in NCCL's log those for AllReduce, of all ranks.
others() { # STEERED MODEL OPTION...
    local steered=$1
    shift
    rm -rf "$work/logs" "$work/alone-logs"
    run_planned "$1" --log "$work/logs" "${@:2}"
    as_planned "$steered"
    run_ring "$work/alone" "$1" --preload - --log "$work/alone-logs" "${@:2}"
    python3 - "$work/alone" "$work/rings" "$steered" <<'PYTHON' || { show_log; fail "$what: not as NCCL alone"; }
import glob, json, os, re, sys
alone, rings = [{comm["comm"]: comm for comm in json.load(open(path))["comms"]} for path in sys.argv[1:3]]
def edges(comm):
    return [[(e["from"], e["to"], e["send"]["via"], e.get("receive", {}).get("via")) for e in ring["edges"]] for ring in comm["channels"]]
if alone.keys() != rings.keys() or len(alone) < 3:
    sys.exit(f"{sorted(alone)} and {sorted(rings)}")
for name in alone.keys() - {sys.argv[3]}:
    if edges(alone[name]) != edges(rings[name]):
        sys.exit(f"{name}: alone {edges(alone[name])}, now {edges(rings[name])}")
print(f"{len(alone) - 1} others as alone")
PYTHON
    for log in "$work"/alone-logs/*.log; do
        diff <(tables "$log") <(tables "$work/logs/$(basename "$log")") || fail "$what: another table"
    done
    [ "$(tables "$work/alone-logs/node0-process0.log" | wc -l)" -gt 2 ] || fail "NCCL's log has no tables"
}
tables() { # LOG
    sed -n 's/.*NCCL INFO *\(AllReduce |.*\)/\1/p' "$1" | sort
}

# Which way all ranks made their buffers: files, or cumem.
buffers() {
    local log
    for log in "$work"/logs/*.log; do
        ! grep -q 'CUMEM allocated shareable' "$log" || echo cumem
        ! grep -q 'MMAP allocated shareable' "$log" || echo files
    done | sort -u
}
all_ranks() { # files or cumem
    [ "$(buffers)" = "$1" ] || { show_log; fail "$what: buffers are $(buffers), not all $1"; }
}

chain="amd-4gpu:0-3=0 -m3> 1 -m2> 3 -m1> 2 -m0> 0" # memories that are not NCCL's own choice
make_plans "$chain"
step "the steered one first"
others "comm 0" amd-4gpu --set WORLD_SIZE=4 -- --subset 0,1 --subset 2 --split 2
all_ranks cumem

step "a process that used NCCL before the shim saw it"
nccl=$("$here/get-nccl" --built)
toolkit=$(dirname "$(dirname "$(readlink -f "$(command -v nvcc || echo "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc")")")")
"${CC:-cc}" -std=gnu17 -D_GNU_SOURCE -O1 -o "$work/odd-loader" "$here/odd-loader.c" -ldl -lpthread || fail "odd-loader can't be built"
"${CC:-cc}" -std=gnu17 -D_GNU_SOURCE -O1 -shared -fPIC -Dmain=probe_main -isystem "$nccl/include" -isystem "$toolkit/include" \
    -o "$work/probe.so" "${probe_parts[@]}" "$rig/lib/libnccl.so.2" "$rig/lib/libcudart.so.13" -lpthread -lm ||
    fail "ring-probe can't be built as a library"
printf '#!/bin/sh\nexec %s ${EARLY:+--early} %s "$@"\n' "$work/odd-loader" "$work/probe.so" >"$work/early"
chmod 755 "$work/early"
make_plans "$chain"
rm -rf "$work/logs"
as_alone amd-4gpu --program "$work/early" --at 1:EARLY=1 --log "$work/logs"
said "process [0-9]* does not call CUDA.s driver through the shim"
all_ranks cumem

step "one rank comes late"
printf '#!/bin/sh\nsleep "${LATE:-0}"\nexec "$@"\n' >"$work/late"
chmod 755 "$work/late"
make_plans "$chain"
rm -rf "$work/logs"
run_planned amd-4gpu --under "$work/late" --at 2:LATE=3 --set WORLD_SIZE=4 --log "$work/logs"
as_planned
all_ranks cumem

step "a small /dev/shm"
make_plans "$chain"
rm -rf "$work/logs"
mount_small='mount -t tmpfs -o size=64m tmpfs /dev/shm && exec "$@"'
unshare --mount --propagation private sh -c "$mount_small" sh "$here/run-ring" "$machines/amd-4gpu.json" --plan "${plans[0]}" \
    --log "$work/logs" >"$work/rings" || fail "run-ring in a small /dev/shm"
as_planned
all_ranks cumem
