#!/bin/bash
# Plan files that are wrong, truncated, foreign, gone or unreadable: NCCL goes on as alone, and one
# line in the log says why.
# level: all
. "$(dirname "${BASH_SOURCE[0]}")/shim.sh"

# Two GPUs below one switch, which NCCL joins by P2P and the plan through host memory.
good() { make_plans "dual-8gpu:0,1=0 -m0> 1 -m1> 0" "$@"; }
small=(dual-8gpu --gpus 0,1)

change() { # PYTHON: what is done to the plan, a dictionary; plan = None: to its text
    python3 - "${plans[0]}" <<PYTHON
import sys
path = sys.argv[1]
text = open(path).read()
plan = dict(line.partition(" ")[::2] for line in text.splitlines())
$1
if plan is not None:
    text = "".join(f"{name} {value}".strip() + "\n" for name, value in plan.items())
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

# What this NCCL builds by itself is better; an older one would not have been.
step "no gain with this version of NCCL"
good
sed -i -E 's/^baseline (2[0-9]{4}) ring [0-9.]+/baseline \1 ring 2.5/; s/^baseline (229[0-9]{2}) ring [0-9.]+/baseline \1 own 77.7/' "${plans[0]}"
as_alone "${small[@]}"
said "INFO.*no gain over that of NCCL 2.29 itself, 77.70 GB/s"
step "a gain with this version, but not with others"
good
sed -i -E 's/^baseline ([0-9]+) ring [0-9.]+/baseline \1 own 77.7/; s/^baseline (229[0-9]{2}) own [0-9.]+/baseline \1 ring 2.5/' "${plans[0]}"
run_planned "${small[@]}"
as_planned
said "INFO.*NCCL's own 2.50"

good
aside "another job's" "job" --set SLURM_JOB_ID=1
aside "another step's" "step" --set SLURM_STEP_ID=7
changed "another user's" "user" 'plan["uid"] = int(plan["uid"]) + 1'
changed "a later version" "version" 'plan["tccl-plan"] = 2'
changed "truncated" "truncated" 'plan, text = None, text[:len(text) // 2]'
changed "torn at the end of a line" "truncated" 'del plan["end"]'
changed "empty" "" 'plan, text = None, ""'
changed "something else" "" 'plan, text = None, "GIF89a" * 100'
changed "JSON" "" "plan, text = None, '{\"version\": 1}\n'"
changed "too long" "" 'plan, text = None, text + " " * 300000'
changed "a long line" "" 'plan["gpus"] += " " + plan["gpus"] * 1000'
changed "a fact twice" "" 'plan, text = None, text.replace("gbps", "gbps 1\ngbps", 1)'
changed "a control character" "" 'plan["source"] = "mo\033del"'
changed "a ring with a GPU that is not there" "" 'for name in ["gpus", "chain"]: plan[name] = plan[name].replace(plan["gpus"].split()[1], "0000:ee:00.0")'
changed "chain and GPUs differ" "" 'plan["chain"] = plan["chain"].replace(plan["gpus"].split()[1], "0000:ee:00.0")'
changed "a GPU twice" "" 'plan["chain"] = plan["chain"].replace(plan["gpus"].split()[1], plan["gpus"].split()[0])'
changed "an edge too few" "" 'plan["chain"] = plan["chain"].rpartition(" -")[0]'
changed "an unknown kind of edge" "" 'plan["chain"] = plan["chain"].replace("-m0>", "-t0>")'
changed "a memory that is not there" "" 'plan["nodes"] = plan["nodes"].split()[0]'
changed "open, on one node" "" 'plan["chain"] = "mlx5_0 -m0> " + plan["chain"].rpartition(" -")[0] + " -m0> mlx5_0"'
changed "numbers as texts" "" 'plan["step_gpus"] = "two"'
changed "GPUs by their numbers" "" 'plan["chain"] = "0 -m0> 1 -m1> 0"'
changed "exactly one bounce in a ring of one node, which can't be had" "" 'plan["chain"] = plan["chain"].replace("-m0>", "-w>")'
changed "P2P that both writes and reads" "" 'plan["chain"] = plan["chain"].replace("-m0>", "-w>").replace("-m1>", "-r>")'

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
