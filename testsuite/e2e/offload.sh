#!/bin/bash
# Jobs that offload: TCCL_BACKGROUND=offload of a user and Background=offload of a policy give a step the ring that was
# measured to be the best beside that; nodes without such a profile take the plain one, and one line says so. tcclacct shows
# what was asked for and what there was; tccl-check names a policy that asks for what is not there.
# cluster: mixed
# level: quick
. "$(dirname "$0")/lib.sh"

one="-w n1 -N1 --gpus-per-node=4 --ntasks-per-node=1"
kind=$(readlink -f "$cluster/nodes/n1/kind")
cp "$cluster/tccl.conf" "$cluster/tccl.conf.before"
cache=$cluster/nodes/n1/cache
profile=$(echo "$cache"/*)
at_end+=("rm -rf $cluster/nodes/*/cache/*/offload; mv $cluster/tccl.conf.before $cluster/tccl.conf")

lines() { # SHELL-PATTERN...: the lines that the step says, in this order, and no others
    local i=0 line said
    mapfile -t said < <(grep 'tccl: ' "$work/err" || true)
    equal "lines with tccl:" "${#said[@]}" $#
    for line; do matches "a line" "${said[i++]}" "$line"; done
}

shows() { # BACKGROUND SOURCE
    recorded "$(job_of)" 0 background "$1"
    recorded "$(job_of)" 0 source "$2"
}

# Are these the rings that tccl-path solves from that profile: several if they gain more than 5 %?
ring_of() { # PROFILE
    admin tccl-path solve --rings 1 --profile "$1" --gpus 0-3 --json >"$work/single.json"
    admin tccl-path solve --profile "$1" --gpus 0-3 --json >"$work/sets.json"
    python3 - "$(values TCCL_GBPS)" "$work/single.json" "$work/sets.json" <<'PYTHON' || fail "TCCL_GBPS"
import json, sys
single, sets = (json.load(open(file))["gbps"] for file in sys.argv[2:])
best = sets if sets > 1.05 * single else single
assert abs(float(sys.argv[1]) - best) < 0.0051, (sys.argv[1], best)  # 7.875 may be printed either way
PYTHON
}

# There is no such profile.
srun_show $one --tccl=on
ring_of "$profile"
plain=$(values TCCL_GBPS)
shows "" model
TCCL_BACKGROUND=offload srun_show $one --tccl=on
applied 1
lines '*tccl: *ring* of 4 GPUs: * GB/s (NCCL*), by a model' '*tccl: no profile with offload for these GPUs: *run --background offload*'
all_have TCCL_GBPS "$plain"
shows offload model
TCCL_BACKGROUND=offload srun_show $one --tccl=auto
applied 1
says_nothing
TCCL_BACKGROUND=$'mu\nch' srun_show $one --tccl=on # no line of its own in anybody's log
applied 1
lines '*tccl: *ring* of 4 GPUs: *' '*tccl: TCCL_BACKGROUND is ignored: "mu?ch" is not offload or none'
shows "" model

admin tccl-profile run --model "$kind/model.json" --cache "$cache" --background offload --gpus "0-3 0-1" --quiet
beside=$profile/offload
TCCL_BACKGROUND=offload srun_show $one --tccl=on
applied 1
lines '*tccl: * rings of 4 GPUs: * GB/s beside offload (NCCL*), by a model'
ring_of "$beside"
[ "$(values TCCL_GBPS)" != "$plain" ] || fail "the same bandwidth with and without offload: $plain"
shows offload model+offload
TCCL_BACKGROUND=offload srun_show -w n1 -N1 --gpus-per-node=3 --ntasks-per-node=1 --tccl=on # GPUs that it has not
equal "TCCL_STATE" "$(values TCCL_STATE | grep -cx 'applied\|nothing-to-do')" 1
shows offload model
srun_show $one --tccl=on
all_have TCCL_GBPS "$plain"
shows "" model

# Not all nodes have it: theirs are plain. It goes with the folder of the profile.
TCCL_BACKGROUND=offload srun_show -N4 --gpus-per-node=4 --ntasks-per-node=1 --tccl=on
applied 4
lines '*tccl: *ring* of 4 nodes*' '*tccl: no profile with offload on all of these nodes: *'
shows offload mixed
cp -a "$beside" "$cluster/nodes/n2/cache/$(basename "$profile")/"
TCCL_BACKGROUND=offload srun_show -w n1,n2 -N2 --gpus-per-node=4 --ntasks-per-node=1 --tccl=on
applied 2
shows offload model+offload

# By policy; the user's word goes before it.
cat >>"$cluster/tccl.conf" <<CONF
[policy zero]
JobNames=zero *
Default=on
Background=offload
CONF
check n1 --only profile
item profile warn 'chains with offload for 2 of 15 GPU sets: for others run tccl-profile run --background offload*'
check n3 --only profile
item profile warn 'Background=offload of \[policy zero\]: no profile with offload in *: run tccl-profile run --background offload*'
srun_show -J "zero 3" $one
applied 1
ring_of "$beside"
shows offload model+offload
recorded "$(job_of)" 0 policy zero
TCCL_BACKGROUND=none srun_show -J "zero 3" $one
all_have TCCL_GBPS "$plain"
shows "" model

# What a job without a ring copies runs all the same: others are planned beside it. It says nothing, not even of a bad setting.
chmod 1777 "$work"
found=()
for background in offload 'mu?ch'; do
    rm -f "$work/runs" "$work/over"
    user env TCCL_BACKGROUND="$background" srun -w n1 -N1 -n1 --gpus=2 --tccl=off sh -c "touch $work/runs; until [ -e $work/over ]; do sleep 0.1; done" 2>"$work/off.err" &
    off=$!
    eventually "the step without a ring" test -e "$work/runs"
    srun_show -w n1 -N1 -n1 --gpus=2 --tccl=on
    recorded "$(job_of)" 0 neighbours 1
    found+=("$(record "$(job_of)" 0 beside)")
    touch "$work/over"
    wait $off || fail "the step without a ring"
    equal "what it says" "$(grep tccl "$work/off.err")" ""
done
echo "beside it: ${found[*]/#/ }"
python3 - "${found[@]}" <<'PYTHON' || fail "copies of a job without a ring don't count"
import sys
with_copies, alone = (float(text.split("/")[0]) for text in sys.argv[1:])
assert with_copies < 0.9 * alone, sys.argv
PYTHON
