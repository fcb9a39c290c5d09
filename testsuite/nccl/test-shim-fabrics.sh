#!/bin/bash
# A single ring over NICs of several fabrics, which those of NCCL's own choice might not meet, is built by all nodes of a step or by none,
# as real tccld tell them.
# level: all
. "$(dirname "${BASH_SOURCE[0]}")/tccld.sh"
export TCCL_CONF_LINES=MaxRings=1

python3 - "$machines/quad-8gpu.json" "$work/rails.json" <<'PYTHON'
import json
import sys
with open(sys.argv[1]) as file:
    model = json.load(file)
for number, nic in enumerate(model["machine"]["nics"]):
    nic["fabric"] = f"rail{number}"
with open(sys.argv[2], "w") as file:
    json.dump(model, file)
PYTHON

run() { # OPTION...: a step of two such nodes
    rm -rf "$work/log"
    joined "$work/rails.json" "$work/rails.json" -- "../../../../../../../..$work/rails" --nodes 2 --log "$work/log" "$@" 2> >(grep -v "a kernel launch refused" >&2)
}

step "all nodes build it"
run
grep -qx "agreed yes" "${plans[0]}" || fail "the plan does not say that all nodes are to build it"
as_planned
said "TCCL INFO communicator .*: ring .*" 2

step "the second node's user has a topology file"
run --at 8:NCCL_TOPO_FILE=/nowhere
said "NCCL's own choice: not all nodes build it, and its NICs might not meet theirs: n2 uses NCCL's own choice" 1
said "TCCL INFO communicator .*: ring .*" 0
