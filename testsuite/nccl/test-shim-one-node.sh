#!/bin/bash
# Several rings at once are built by all nodes of a step or by none, as real tccld tell them: NCCL takes the least number of channels
# and the least speed of all nodes, each by itself, so ring and tree would be slower in its table than alone. Where a node
# stands aside, its user wants that or its tccld is killed or stopped, the table is that of NCCL alone, whichever node has rank 0 (which
# has it in its log), and the others build the first rings in NCCL's own number of channels. A node that is not heard is waited for
# once in a step. Record and tcclacct say what was built, and why. In cuMem mode, with an NCCL that reads graph files in no time: TCCL_NCCL=2.30.7 and others: with that version.
# level: all
export TCCL_NCCL=${TCCL_NCCL:-2.27.7}
"$(dirname "${BASH_SOURCE[0]}")/get-nccl" >/dev/null || { [ $? = 77 ] && echo "skipped: there is no NCCL $TCCL_NCCL here (get-nccl VERSION)"; exit 77; }
. "$(dirname "${BASH_SOURCE[0]}")/tccld.sh"
export TCCL_CONF_LINES=MaxRings=8

run() { # OPTION...: a step of two nodes with several rings
    rm -rf "$work/log"
    joined amd-4gpu amd-4gpu -- amd-4gpu --nodes 2 --log "$work/log" "$@" 2> >(grep -v "a kernel launch refused" >&2)
}

run_ring "$work/own" amd-4gpu --nodes 2 --log "$work/alone" --preload - 2>/dev/null
own_table() {
    python3 - "$here" "$work" <<'PYTHON' || { show_log; fail "$what: not NCCL's own table"; }
import sys
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import tuning
alone, planned = (tuning.read(f"{sys.argv[2]}/{name}/node0-process0.log") for name in ["alone", "log"])
sys.exit(next((f"{name}: {getattr(planned, name)}, not {getattr(alone, name)}" for name in ["channels", "graphs", "table"]
               if getattr(alone, name) != getattr(planned, name)), 0))
PYTHON
}

first_ring() { # NODE...: they have the first ring of the plan in all communicators, and say so
    local expected=(- -) node
    for node in "$@"; do expected[node]=${plans[node]}; done
    "$here/compare-plan" "$work/rings" "comm 0" "${expected[@]}" --first 1 || { show_log; fail "$what: not the first ring"; }
    said "TCCL WARN communicator .*: built in part: 1 of [2-8] rings: " $(($# * ${comms:-1}))
    said "differs|something else" 0
}

apart() { # WHY [COUNT]
    said "TCCL INFO communicator .*: not all nodes build all rings: NCCL's own number of channels: $1" "${2:-1}"
}

step "all nodes build them"
run
as_planned
said "TCCL INFO communicator .*: built as planned" 2
said "not all nodes build" 0
built yes

# The one that NCCL would have read anyway: without it NCCL would look at the CPU of the machine that runs the test.
step "the second node's user has a topology file"
run --at 4:NCCL_TOPO_FILE=/var/run/nvidia-topologyd/virtualTopology.xml
own_table
first_ring 0
apart "n2 uses NCCL's own choice"
built partly
reason="n2: the user has set [^|]* \(1 of 2 nodes left the plan alone\); n1: 1 of [2-8] rings: n2 uses NCCL's own choice \(1 of 2 nodes\)"
[ ! -x "$TCCL_BUILD/spank/tcclacct" ] || grep -qE "^planned\|partly\|$reason\$" "$step_folder/tcclacct" ||
    fail "tcclacct says $(cat "$step_folder/tcclacct"), not $reason"

step "the first node's user has one"
run --at 0:NCCL_TOPO_FILE=/var/run/nvidia-topologyd/virtualTopology.xml
own_table
first_ring 1
apart "n1 uses NCCL's own choice"

step "the second node's tccld is killed"
TCCL_MEANWHILE=KILL:2 run
own_table
first_ring 0 1
late="n2 has not said in time that it builds the rings: run tccl-check there"
apart "$late"
apart "no tccld at .*"
said "TCCL WARN communicator .*: built in part: 1 of [2-8] rings: $late"
said "TCCL WARN communicator .*: built in part: 1 of [2-8] rings: no tccld at .*"

for node in 1 2; do
    step "tccld of node $node is started again"
    TCCL_MEANWHILE=AGAIN:$node run
    as_planned
    said "TCCL INFO communicator .*: built as planned" 2
    said "not all nodes build" 0
    built yes
done

# The second communicator does not wait.
late="decision in time|did not ask for all of its"
step "the first node's tccld is stopped"
TCCL_MEANWHILE=STOP:1 run -- --comms 2
own_table
comms=2 first_ring 0 1
apart "tccld did not answer in time"
apart "n1 has not said in time that it builds the rings"
apart "a node has not said in time whether it builds the ring" 2
