#!/bin/bash
# A machine with three NUMA nodes, one of them without memory (a virtual one): it is described as it
# is, memory is bound to the nodes where it should lie, each memory is measured, and chains are found.
# cluster: own
# level: all
. "$(dirname "$0")/lib.sh"

work=$(mktemp -d --tmpdir tccl-numa-XXXXXX)
trap 'rm -rf "$work"' EXIT
profile=$build/profiler/tccl-profile
cat >"$work/inside" <<INSIDE
set -e
"$build/testsuite/unit/test-workspace"
"$profile" init --backend host --machine "\$SHARED/machine.json" 2>"\$SHARED/notes"
"$profile" show --json --backend host >"\$SHARED/shown" 2>/dev/null
"$profile" run --backend host --cache "\$SHARED/cache" --gpus 0-1 --window 2 --repeats 3 --budget 90s --gap 0.5
"$profile" report --json --cache "\$SHARED/cache" >"\$SHARED/report"
INSIDE
status=0
cd "$root"
SHARED=$work testsuite/vm/vm --nodes 400,0,400 --cpus 3 --timeout 900 -- bash -c "$(<"$work/inside")" || status=$?
[ $status != 77 ] || exit 77
equal "exit status" $status 0

grep -q 'NUMA node 1 has no memory' "$work/notes" || fail "no note of the node without memory: $(<"$work/notes")"
python3 - "$work" <<'PYTHON'
import glob, json, re, sys

work = sys.argv[1]
machine = json.load(open(f"{work}/machine.json"))
assert machine["memories"] == 2, machine
assert machine["nodes"] == [0, 2], machine  # the kernel's numbers
assert sorted(gpu["numa"] for gpu in machine["gpus"]) in ([0, 0, 1], [0, 1, 1]), machine
(log,) = glob.glob(f"{work}/cache/*/sets.jsonl")
sets = {}
for line in open(log):
    measured = json.loads(line[:line.rindex(" ")])
    sets[measured["set"]] = measured
for memory in range(2):  # in the time that there is, not from every core
    for way in "><":
        assert any(sets.get(f"g{gpu}{way}m{memory}", {"gbps": 0})["gbps"] > 0 for gpu in range(3)), (memory, way)
assert json.load(open(f"{work}/report"))
chains = glob.glob(f"{work}/cache/*/chains/00000003.chains")
assert chains, "no chains for GPUs 0-1"
print(len(sets), "sets measured")
PYTHON
