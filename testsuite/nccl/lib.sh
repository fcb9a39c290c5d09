# lib.sh: what the tests in this folder share. A test ends with 0, 77 (skipped, the reason is the
# last line), or anything else (failed).
set -Eeuo pipefail
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
readonly here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly machines=$here/../machines
export TCCL_BUILD=${TCCL_BUILD:-$(cd "$here/../.." && pwd)/build}

# Skips the test, with the reason, where there can be no rig.
rig=$("$here/rig") || exit $?

work=$(mktemp -d /tmp/tccl-nccl.XXXXXX)
trap 'rm -rf "$work"' EXIT
trap 'exit 143' TERM HUP INT

fail() {
    echo "FAILED: $*"
    exit 1
}

skip() {
    echo "skipped: $*"
    exit 77
}

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
