#!/bin/bash
# Communicators made from others: Split (also without some ranks, of a split, sharing), Shrink, Grow.
# Children over all GPUs get the planned ring; others what tccld knows for them, here nothing.
# level: all
. "$(dirname "${BASH_SOURCE[0]}")/shim.sh"

use() { # GPUS CHAIN
    gpus=$1
    make_plans "dual-8gpu:$1=$2"
}

child() { # WHAT OPTION...
    step "$1"
    options=(dual-8gpu --gpus "$gpus" "${@:2}")
    run_planned "${options[@]}"
    as_planned
}

# All but the named communicators are what NCCL makes without the shim.
others_alone() { # NAME...
    run_alone "${options[@]}"
    python3 - "$alone" "$work/rings" "$@" <<'PYTHON' || fail "$what: not as NCCL alone"
import json, sys
alone, rings = [{comm["comm"]: [[(e["from"], e["to"], e["send"]["kind"]) for e in ring["edges"]] for ring in comm["channels"]]
                 for comm in json.load(open(path))["comms"]} for path in sys.argv[1:3]]
if alone.keys() != rings.keys():
    sys.exit(f"{sorted(alone)} and {sorted(rings)}")
for name in alone.keys() - set(sys.argv[3:]):
    if alone[name] != rings[name]:
        sys.exit(f"{name}: {alone[name]} and {rings[name]}")
PYTHON
}

use 0-3 "0 -m0> 1 -w> 3 -m0> 2 -w> 0"
child "Split into two, and again" -- --split 2 --again
others_alone "comm 0"
said WARN
child "Split in threads' place: two GPUs in each process" --processes 2 -- --split 1
as_planned split

use 0-2 "0 -m0> 2 -w> 1 -m0> 0"
child "Split into one" -- --split 1
as_planned split
child "Split into one that shares" -- --split 1 --share
as_planned split
child "Split of one process' ranks" --processes 1 -- --split 2
others_alone "comm 0"
child "Split without a rank" -- --split 1 --no-color 2
others_alone "comm 0"
child "Shrink, and grow again" -- --shrink 1 --grow
others_alone "comm 0" grown

use 0,1 "0 -m0> 1 -m1> 0"
child "Split without waiting" -- --nonblocking --split 1
as_planned split
