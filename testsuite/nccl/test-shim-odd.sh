#!/bin/bash
# Programs that make communicators in ways that are seldom used: configurations of all kinds, splits that share or that
# nobody is in, ranks in another order than GPUs, many communicators one after the other, children, inits that are
# given up; arguments that NCCL refuses. What NCCL returns is the same without the shim.
# level: all
. "$(dirname "${BASH_SOURCE[0]}")/shim.sh"

build_comms odd-comms
"$here/describe-machine" "$machines/dual-8gpu.json" "$work/machine"

run() { # OUTPUT NAME=VALUE... -- WORD...
    local output=$1 settings=()
    shift
    while [ "$1" != -- ]; do settings+=("$1"); shift; done
    shift
    env TCCL_RIG_LAUNCH=nothing LD_LIBRARY_PATH="$rig/lib" NCCL_SOCKET_IFNAME=lo CUDA_VISIBLE_DEVICES=2,0,3 "${settings[@]}" \
        "$here/on-machine" "$work/machine" -- "$work/odd-comms" "$@" >"$output" 2>&1 ||
        { cat "$output"; fail "$what: the program ended with an error"; }
}

# So many communicators are built as planned; of others there is no verdict but those that match $allowed (default: none).
# The program's words are as without the shim.
way() { # COUNT WORD...
    local count=$1 try
    shift
    what=$*
    echo "--- $what"
    run "$work/plain" -- "$@"
    cat "$work/plain" | uniq -c
    for try in 1 2 3; do
        make_plans "dual-8gpu:0,2,3=0 -w> 3 -m0> 2 -m1> 0"
        rm -f "$work/tccl"
        run "$work/out" LD_PRELOAD="$TCCL_BUILD/runtime/libtccl-nccl.so" TCCL_PLAN="${plans[0]}" TCCL_DEBUG=INFO \
            TCCL_DEBUG_FILE="$work/tccl" SLURM_JOB_ID="$(key job)" SLURM_STEP_ID="$(key step)" -- "$@"
        came_late || break
    done
    cat "$work/tccl"
    diff "$work/plain" "$work/out" || fail "$what: not as without the shim"
    [[ $(grep -c 'built as planned' "$work/tccl") == "$count" ]] || fail "$what: not $count communicators as planned"
    ! grep 'differs\|not known' "$work/tccl" | grep -vE "${allowed:-^$}" || fail "$what"
}

way 2 configs
# Those that do not share their parent's buffers. In the older mode: with cuMem NCCL's log does not always tell apart what
# parents and children connect in one process, and the verdict is "not known".
TCCL_RIG_CUMEM=0 way 3 splits
# Communicators that are gone, and splits that nobody is in, leave their places in the node's registry to others.
one_place() {
    local size
    size=$(du -k "/dev/shm/tccl-$UID-$(basename "${plans[0]%/plan}" | sed 's/.*-//').0" | cut -f 1)
    [ "$size" -lt 200 ] || fail "$what: the registry has grown to $size KiB"
}
# Where NCCL's log does not tell them apart, nobody is given what may be another one's.
way 1 mixed
NCCL_DEBUG=WARN way 0 mixed
grep -q 'several communicators begin at once' "$work/tccl" || fail "$what"
way 20 again 20
one_place
way 2 nobody 100
one_place
way 1 wrong
way 3 forks
# NCCL has said nothing about one that is given up while it is made, and has connected none that is given up ahead of
# its first collective.
allowed="not known: (NCCL's log does not say what it built|no collective was run)" way 1 aborts 8
