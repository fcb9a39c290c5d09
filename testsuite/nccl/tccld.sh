# tccld.sh: tests of the shim within a step of real tccld (see with-tccld).
. "$(dirname "${BASH_SOURCE[0]}")/shim.sh"
command -v munged >/dev/null || { echo "skipped: no munged"; exit 77; }
for program in profiler/tccld profiler/tccl-profile; do
    [ -x "$TCCL_BUILD/$program" ] || { echo "skipped: the build has no $program"; exit 77; }
done

# joined, again while tccld was too busy to tell chains of subsets in time (2 s).
joined_in_time() { # NODE... -- MODEL OPTION...
    local try
    for try in {1..10}; do
        joined_once "$@"
        came_late || return 0
    done
    skip "this machine is too busy for tccld to answer in time"
}

joined() { # as joined_once
    local try
    for try in 1 2 3; do
        joined_once "$@"
        came_late || break
    done
}

# Runs run-ring within a step of these nodes. After it, plans are those of the step, and the rings are in $work/rings. TCCL_EDIT_PLAN: what
# sed is to make of the plans before.
joined_once() { # NODE... -- MODEL OPTION...
    local nodes=() options=() after=()
    number=$((${number:-0} + 1))
    step_folder=$work/step$number
    while [ "$1" != -- ]; do nodes+=("$1"); shift; done
    shift
    local model=$machines/$1.json
    shift
    while [ $# -gt 0 ] && [ "$1" != -- ]; do options+=("$1"); shift; done
    after=("$@")
    # The plans' files end with the step: copies stay, by which the rings are looked at.
    cat >"$work/job" <<'JOB'
plans=$1
shift
options=()
while read -r plan; do
    [ -z "${TCCL_EDIT_PLAN:-}" ] || sed -i "$TCCL_EDIT_PLAN" "$plan"
    options+=(--plan "$plan")
    mkdir -p "$plans.kept/$plan"
    cp "$plan" "$plans.kept/$plan"
done <"$plans"
for argument in "$@"; do
    shift
    [ "$argument" != -- ] || { set -- "$@" "${options[@]}" -- ; options=(); continue; }
    set -- "$@" "$argument"
done
exec "$@" "${options[@]}"
JOB
    "$here/with-tccld" "$step_folder" "${nodes[@]}" -- bash "$work/job" "$step_folder/plans" "$here/run-ring" "$model" --cumem "$cumem" \
        ${options[@]+"${options[@]}"} ${after[@]+"${after[@]}"} >"$work/rings" ||
        { local status=$?; cat "$step_folder"/n*/log; no_ring $status "$what: run-ring ended with an error"; }
    mapfile -t plans < <(sed "s,.*,$step_folder/plans.kept&/plan," "$step_folder/plans")
}

# What the step's record says that NCCL built.
built() { # WORD
    local found
    found=$(python3 -c 'import json, sys
records = json.load(open(sys.argv[1]))
print(records[0].get("built"), "-", records[0].get("built_reason", "")) if records else print("no record")' "$step_folder/record.json")
    echo "the record: $found"
    [[ $found == "$1 -"* ]] || { show_log; fail "$what: the record says \"$found\", not $1"; }
}
