# shim.sh: what the tests of the runtime shim share.
! declare -F make_plans >/dev/null || return 0 # it is here already
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

[ -e "$TCCL_BUILD/runtime/libtccl-nccl.so" ] || { echo "skipped: the build has no libtccl-nccl.so"; exit 77; }
trap 'remove_registries; rm -rf "$work"' EXIT

# The shared memory of steps that no tccld ended. Folders of plans are named job.step.restart-hash.
remove_registries() {
    local folder
    for folder in $(find "$work" -type d -name '*.*.*-*'); do
        rm -rf /dev/shm/tccl-*-"${folder##*-}".*
    done
}

plans=()
make_plans() { # [OPTION]... NODE...: plan files of a new step, in plans (see plan-for)
    number=$((${number:-0} + 1))
    mapfile -t plans < <("$here/plan-for" "$work/plans$number" "$@")
    [ ${#plans[@]} -gt 0 ] || fail "plan-for $*"
}

key() { # MEMBER: of the step's key, in the plan
    sed -n "s/^$1 //p" "${plans[0]}"
}

with_plans() { # options of run-ring that hand plans out
    printf -- '--plan\n%s\n' "${plans[@]}"
}

# Runs with the plans; the rings are in $work/rings. Where ranks of the node kept each other waiting for too long, as they
# do on a busy machine, it is run again, as if in a new step: what they came to stays in the step's shared memory.
run_planned() { # MODEL OPTION...
    local model=$1 options try
    shift
    mapfile -t options < <(with_plans)
    for try in 1 2 3; do
        rm -f "$work"/trace.* # of a try before
        run_ring "$work/rings" "$model" "${options[@]}" "$@"
        came_late || break
        [ $try = 3 ] || remove_registries
    done
}

# Did the shim give up in the last run because something took too long?
came_late() {
    { [ ! -s "$work/rings" ] || show_log; cat "$work/tccl" 2>/dev/null || true; } | grep -E "$late"
}
late="decision in time|chain: not all of the node|did not ask for all of its|did not answer in time|log does not tell of"

fail() {
    ! came_late || ! "$here/../is-busy" || skip "this machine is too busy: $*"
    echo "FAILED: $*"
    exit 1
}

# What NCCL built for a communicator is what the plans say.
as_planned() { # [COMMUNICATOR [OPTION]...]
    local comm=${1:-comm 0}
    shift || true
    "$here/compare-plan" "$work/rings" "$comm" "${plans[@]}" "$@" ||
        { show_log; fail "${what:-}: $comm is not as planned"; }
}

show_log() {
    python3 -c 'import json, sys
for node, lines in enumerate(json.load(open(sys.argv[1]))["log"]):
    for line in lines: print(f"node {node}: {line}")' "$work/rings"
}

# Lines of the shim's log that match are so many (default: at least one).
said() { # PATTERN [COUNT]
    local count
    count=$(show_log | grep -cE -- "$1" || true)
    [ "${2:-some}" = some ] && [ "$count" -gt 0 ] || [ "$count" = "${2:-some}" ] ||
        { show_log; fail "${what:-}: $count lines with \"$1\", not ${2:-some}"; }
}

# Nothing was left undone. (That this machine has not the NUMA nodes of the model does not count.)
no_warning() {
    said 'TCCL WARN ([^b]|b[^u])' 0
}

# What NCCL builds without the shim, in the file $alone. (Asked once for the same options.)
run_alone() { # MODEL OPTION...
    alone=$work/alone-$(printf '%s\n' "$cumem" "$@" | md5sum | cut -c 1-16)
    [ -e "$alone" ] || run_ring "$alone" "$1" --preload - "${@:2}"
}

# With the plans NCCL built the same as without the shim.
as_alone() { # MODEL OPTION...
    run_planned "$@"
    run_alone "$@"
    "$here/same-rings" "$alone" "$work/rings" || { show_log; fail "${what:-}: not as NCCL alone"; }
}

# A program of this folder that makes communicators, in $work.
build_comms() { # NAME [FOLDER]
    local nccl toolkit
    nccl=$("$here/get-nccl" --built)
    toolkit=$(dirname "$(dirname "$(readlink -f "$(command -v nvcc || echo "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc")")")")
    "${CC:-cc}" -std=gnu17 -O1 -isystem "$nccl/include" -isystem "$toolkit/include" -o "$work/$1" \
        "${2:-$here}/$1.c" "$rig/lib/libnccl.so.2" "$rig/lib/libcudart.so.13" || fail "$1 can't be built"
}

step() { # WHAT: for messages
    what=$1
    echo "--- $what"
}
