#!/bin/bash
# Plan files that are wrong, truncated, foreign, gone or unreadable: NCCL goes on as alone, and one
# line in the log says why.
# level: all
. "$(dirname "${BASH_SOURCE[0]}")/shim.sh"

# Two GPUs below one switch, which NCCL joins by P2P and the plan through host memory.
good() { make_plans "dual-8gpu:0,1=0 -m0> 1 -m1> 0" "$@"; }
small=(dual-8gpu --gpus 0,1)

change() { # PYTHON: what is done to the plan
    python3 - "${plans[0]}" <<PYTHON
import json, sys
path = sys.argv[1]
text = open(path).read()
plan = json.loads(text)
$1
if plan is not None:
    text = json.dumps(plan)
open(path, "w").write(text)
PYTHON
}

aside() { # WHAT PATTERN OPTION...
    step "$1"
    local pattern=$2
    shift 2
    as_alone "${small[@]}" "$@"
    said "WARN.*$pattern"
}

changed() { # WHAT PATTERN PYTHON
    good
    change "$3"
    aside "$1" "$2"
}

step "as it should be"
good
run_planned "${small[@]}"
as_planned

good
aside "another job's" "job" --set SLURM_JOB_ID=1
aside "another step's" "step" --set SLURM_STEP_ID=7
changed "another user's" "user" 'plan["uid"] += 1'
changed "a later version" "version" 'plan["version"] = 2'
changed "truncated" "" 'plan, text = None, text[:len(text) // 2]'
changed "empty" "" 'plan, text = None, ""'
changed "not JSON" "" 'plan, text = None, "GIF89a" * 100'
changed "deeply nested" "" 'plan, text = None, "[" * 100000'
changed "too long" "" 'plan, text = None, text + " " * 300000'
changed "a ring with a GPU that is not there" "" 'plan["links"]["gpus"][1] = "0000:ee:00.0"; plan["gpus"][1] = "0000:ee:00.0"'
changed "chain and GPUs differ" "" 'plan["links"]["gpus"][1] = "0000:ee:00.0"'
changed "a GPU twice" "" 'plan["links"]["gpus"][1] = plan["links"]["gpus"][0]'
changed "an edge too few" "" 'plan["links"]["edges"].pop()'
changed "an unknown kind of edge" "" 'plan["links"]["edges"][0]["kind"] = "teleport"'
changed "open, on one node" "" 'plan["links"]["closed"] = False'
changed "numbers as texts" "" 'plan["step_gpus"] = "2"'
changed "exactly one bounce in a ring of one node, which can't be had" "" 'plan["links"]["edges"][0] = {"kind": "p2p-write", "node": -1}'
changed "P2P that both writes and reads" "" 'plan["links"]["edges"] = [{"kind": "p2p-write", "node": -1}, {"kind": "p2p-read", "node": -1}]'

good
mv "${plans[0]}" "${plans[0]}.gone"
aside "vanished" ""
good
rm -r "$(dirname "${plans[0]}")"
aside "the folder is gone, as in a container" ""
good
rm "${plans[0]}"
mkdir "${plans[0]}"
aside "a folder in its place" ""
good
rm "${plans[0]}"
mkfifo "${plans[0]}"
aside "a pipe that nobody writes to" ""
good
aside "a device" "" --set TCCL_PLAN=/dev/zero
