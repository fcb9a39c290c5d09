# lib.sh: what the tests share that run a stock NCCL on the rig.
. "$(dirname "${BASH_SOURCE[0]}")/base.sh"
readonly machines=$here/../machines

# Skips the test, with the reason, where there can be no rig.
rig=$("$here/rig") || exit $?

# NCCL's mode: cuMem, as people run it, or the older one (off). A test in which NCCL is in another mode fails.
cumem=on

run_ring() { # FILE MODEL OPTION...: the rings, into a file
    local file=$1 model=$2
    shift 2
    "$here/run-ring" "$machines/$model.json" --cumem "$cumem" "$@" >"$file" || no_ring $? "run-ring $model $* ended with $?"
}

# run-ring ended with an error: 75, if its time was over.
no_ring() { # STATUS MESSAGE
    [ "$1" != 75 ] || ! "$here/../is-busy" || skip "this machine is too busy: $2"
    fail "$2"
}

# Python's view of a file by run-ring: comms, and orders (of GPUs or ranks, one for each channel).
look() { # FILE PYTHON-LINES
    python3 - "$1" <<PYTHON
import json, sys
answer = json.load(open(sys.argv[1]))
comms = {comm["comm"]: comm for comm in answer["comms"]}
def orders(comm="comm 0"):
    return [ring["ranks"] for ring in comms[comm]["channels"]]
def kinds(comm="comm 0"):
    return [[edge["send"]["kind"] for edge in ring["edges"]] for ring in comms[comm]["channels"]]
def expect(what, got, wanted):
    if got != wanted:
        sys.exit(f"FAILED: {what}: {got}, not {wanted}")
$2
PYTHON
}
