#!/bin/bash
# Bounce buffers: the rank that receives asks for memory of the plan's NUMA node while its
# communicator is made, and not longer. (This machine has one node, so what it asks for is looked at.)
. "$(dirname "${BASH_SOURCE[0]}")/shim.sh"

strace -e trace=none true 2>/dev/null || { echo "skipped: no strace"; exit 77; }
make_plans "amd-4gpu:0,2,3=0 -m1> 3 -m2> 2 -m3> 0"
run_planned amd-4gpu --gpus 0,2,3 --under "strace -f -ff -qq -e trace=set_mempolicy -o $work/trace"
as_planned
python3 - "$work" <<'PYTHON'
import glob, re, sys
asked = []
for path in glob.glob(sys.argv[1] + "/trace.*"):
    calls = re.findall(r"set_mempolicy\((\w+), (\[[^\]]*\]|NULL)", open(path).read())
    if calls:
        print(path.rsplit(".", 1)[1], calls)
        asked.append(calls)
if len(asked) != 3:
    sys.exit(f"FAILED: {len(asked)} threads set a memory policy, not 3")
nodes = sorted(calls[0][1] for calls in asked)
if nodes != ["[0x0000000000000002]", "[0x0000000000000004]", "[0x0000000000000008]"]:
    sys.exit(f"FAILED: asked for {nodes}")
if any(calls[-1][0] != "MPOL_DEFAULT" for calls in asked):
    sys.exit("FAILED: a policy was not restored")
PYTHON
