#!/bin/bash
# The released NCCLs, the very files that pip brings, with the CUDA runtime inside: their own rings are those that we take for the
# baseline, on one node and on two; rings imposed by the shim are built as planned; so are those of a graph file and by a topology
# file (which the shim's plans use); cuMem is used or not, as the driver has it.
# Usage: test-released.sh [VERSION]...   default: those below that are kept or can be had in some time
# level: all
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly versions="2.21.5 2.27.7 2.29.7 2.31.2 2.32.3"

if [ -z "${TCCL_ONE:-}" ]; then
    ran=0 end=$((SECONDS + 100))
    for version in ${*:-$versions}; do
        left=$((end > SECONDS ? end - SECONDS : 1))
        TCCL_WHEEL_SECONDS=$left "$here/get-wheel" nvidia-nccl-cu12 "$version" >/dev/null || { [ $? = 77 ] && continue; exit 1; }
        echo "=== NCCL $version"
        status=0
        TCCL_ONE=1 TCCL_NCCL=wheel:$version bash "$0" || status=$?
        case $status in 0) ran=$((ran + 1)) ;; 77) ;; *) exit $status ;; esac
    done
    TCCL_NCCL=wheel:${versions##* } bash "$here/test-shim-log.sh" || [ $? = 77 ] || exit 1
    [ $ran -gt 0 ] || { echo "skipped: no released NCCL can be had"; exit 77; }
    exit 0
fi
. "$here/shim.sh"

step "its own rings"
"$here/check-baseline" "$work" "$machines/amd-4gpu.json" --subsets 0 || no_ring $? "NCCL chooses otherwise"

if [[ $TCCL_NCCL == *:2.29.7 || $TCCL_NCCL == *:2.31.2 ]]; then
    step "its own rings between sockets, by the CPU"
    for cpu in amd-zen3 amd-zen5; do
        sed "s/\"name\": \"epyc-8gpu\"/\"name\": \"$cpu\"/; s/\"cpu\": \"amd\"/\"cpu\": \"$cpu\"/" "$machines/epyc-8gpu.json" >"$work/$cpu.json"
        grep -q "\"cpu\": \"$cpu\"" "$work/$cpu.json"
    done
    "$here/check-baseline" "$work" "$work"/amd-zen*.json --subsets 0 || no_ring $? "NCCL chooses otherwise"
fi

step "planned on one node"
make_plans dual-8gpu
run_planned dual-8gpu
as_planned
no_warning
look "$work/rings" "
expect('memory', answer['mode']['memory'], 'cumem')
expect('version', 'wheel:' + '.'.join(str(answer['mode']['version'] // n % 100) for n in (10000, 100, 1)), '$TCCL_NCCL')"

step "planned on two nodes"
make_plans "dual-8gpu:0-3=mlx5_0 -m0> 2 -m0> 3 -w> 0 -w> 1 -m0> mlx5_0" "dual-8gpu:0-3=mlx5_1 -m0> 0 -m0> 1 -w> 3 -m0> 2 -m0> mlx5_0"
run_planned dual-8gpu --gpus 0-3 --nodes 2
as_planned
no_warning

step "a graph file"
"$here/write-graph" "$machines/amd-4gpu.json" 0,2,1,3 >"$work/graph.xml"
run_ring "$work/rings" amd-4gpu --graph "$work/graph.xml" --cumem off
look "$work/rings" '
expect("memory", answer["mode"]["memory"], "older")
for order in orders():
    expect("the imposed ring", order, [0, 2, 1, 3])'

[[ $(nm -D "$rig/lib/libnccl.so.2") == *" ncclAllReduceConfig"* ]] || exit 0

step "a collective with a config"
printf '#!/bin/sh\nexec "%s" "%s" "$@"\n' "$(command -v python3)" "$here/by-ctypes" >"$work/by-ctypes"
chmod 755 "$work/by-ctypes"
make_plans "dual-8gpu:0,2,3=0 -w> 3 -m0> 2 -m1> 0"
run_planned dual-8gpu --gpus 0,2,3 --program "$work/by-ctypes" -- --config
as_planned
said "built as planned" 1
