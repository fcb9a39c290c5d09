#!/bin/bash
# The first collectives of each kind, from 8 bytes to 1 GiB, up to the launch of NCCL's kernel; after them communicators
# are split, shrunk, finalized, destroyed and aborted. Each call returns the same with the planned ring as without the
# shim, and nothing hangs. Kernels do nothing, or are refused, as 1 GiB of real data would take too long: test-data-*. (NCCL is in
# cuMem mode: connected by what each collective needs.)
# level: all
. "$(dirname "${BASH_SOURCE[0]}")/shim.sh"

readonly kinds="broadcast all-reduce all-gather reduce-scatter all-to-all" sizes="8 65536 4194304 1073741824"
collectives=()
for kind in $kinds; do
    for size in $sizes; do
        collectives+=(--collective $kind:$size)
    done
done

check() { # WHAT RESULT-OF-COLLECTIVES CALLS-AT-THE-END MODEL OPTION... -- PROBE-OPTION...
    local result=$2 ends=$3 options=()
    step "$1"
    shift 3
    options=("$@" "${collectives[@]}")
    run_planned "${options[@]}"
    as_planned
    run_alone "${options[@]}"
    python3 - "$work/rings" "$alone" "$result" "$ends" "$kinds" "$sizes" <<'PYTHON' || fail "$what"
import json, sys
shim, alone = (json.load(open(path)) for path in sys.argv[1:3])
result, ends, kinds, sizes = sys.argv[3], sys.argv[4].split(), sys.argv[5].split(), [int(size) for size in sys.argv[6].split()]
def returned(answer):
    return sorted((call["rank"], call["comm"], call["call"], call["bytes"], call["result"]) for call in answer["calls"])
if returned(shim) != returned(alone):
    sys.exit(f"not the same results: {set(returned(shim)) ^ set(returned(alone))}")
ranks = shim["comms"][0]["ranks"]
for kind in kinds:
    for size in sizes:
        got = [call["result"] for call in shim["calls"] if (call["comm"], call["call"], call["bytes"]) == ("comm 0", kind, size)]
        if got != [result] * ranks:
            sys.exit(f"{kind} of {size} bytes: {got}")
for end in ends:
    got = {call["result"] for call in shim["calls"] if call["call"] == end}
    if got != {"no error"}:
        sys.exit(f"{end}: {got}")
# All but sends and receives, for which NCCL chooses no algorithm: it has launched them, or tried to.
for answer in (shim, alone):
    names = {name.lower() for name, _, _, _ in answer["launched"]}
    if names != {kind.replace("-", "") for kind in kinds} - {"alltoall"}:
        sys.exit(f"launched: {names}")
    if answer["mode"]["connected"] != "first collective":
        sys.exit(f"mode: {answer['mode']}")
print("         collective     bytes  alone               with the planned ring")
for a, b in zip(alone["launched"], shim["launched"]):
    print(f"{a[0]:>19} {a[1]:9}  {a[2] + '/' + a[3]:18}  {b[2]}/{b[3]}" + ("" if a[1:] == b[1:] else "  differs"))
PYTHON
}

make_plans "amd-4gpu:0,2,3=0 -m1> 3 -m1> 2 -m3> 0"
check "one node; split and shrunk after the collectives, finalized, destroyed" "no error" "broadcast finalize destroy" \
    amd-4gpu --gpus 0,2,3 --launch nothing -- --children-last --split 1 --shrink 1 --finalize
make_plans "dual-8gpu:0,2,3=0 -w> 3 -m0> 2 -m1> 0"
check "one process, given up" "no error" abort dual-8gpu --gpus 0,2,3 --processes 1 --launch nothing -- --abort
make_plans "epyc-8gpu:0,1=mlx5_0 -m0> 1 -m0> 0 -m0> mlx5_0" "epyc-8gpu:0,1=mlx5_0 -m0> 1 -m0> 0 -m0> mlx5_0"
check "two nodes: the launch is refused; split and destroyed" "unhandled cuda error" destroy \
    epyc-8gpu --gpus 0,1 --nodes 2 --launch refuse -- --children-last --split 2
