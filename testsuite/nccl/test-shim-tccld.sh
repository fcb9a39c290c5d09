#!/bin/bash
# The shim and a real tccld on each node: what NCCL built is confirmed and stands in the step's
# record; subsets of the step's GPUs get the chain that tccld knows for them.
. "$(dirname "${BASH_SOURCE[0]}")/shim.sh"
command -v munged >/dev/null || { echo "skipped: no munged"; exit 77; }

joined() { # FOLDER-NAME NODE... -- MODEL OPTION...: run-ring within a step of real tccld
    local folder=$work/$1 nodes=()
    shift
    while [ "$1" != -- ]; do nodes+=("$1"); shift; done
    shift
    local model=$1
    shift
    cat >"$work/job" <<'JOB'
plans=$1 out=$2
shift 2
options=()
while read -r plan; do options+=(--plan "$plan"); done <"$plans"
exec "$@" "${options[@]}" "${after[@]}" >"$out"
JOB
    local before=() after=() seen=
    for option in "$@"; do
        if [ "$option" = -- ]; then seen=1; fi
        if [ -n "$seen" ]; then after+=("$option"); else before+=("$option"); fi
    done
    printf 'after=(%s)\n' "$(printf '%q ' "${after[@]}")" | cat - "$work/job" >"$work/job.sh"
    "$here/with-tccld" "$folder" "${nodes[@]}" -- bash "$work/job.sh" "$folder/plans" "$work/rings" \
        "$here/run-ring" "$machines/$model.json" "${before[@]}" || { cat "$folder"/n*/log; fail "$what: ended with $?"; }
    mapfile -t plans <"$folder/plans"
    # Its step has ended: the plans are gone, and what they said must have been kept.
}

built() { # FOLDER-NAME WORD
    local found
    found=$(python3 -c 'import json, sys; r = json.load(open(sys.argv[1])); print(r[0].get("built"), r[0].get("built_reason", ""))' "$work/$1/record.json")
    [[ $found == "$2"* ]] || { show_log; fail "$what: the record says \"$found\", not $2"; }
}

step "one node"
joined one amd-4gpu -- amd-4gpu
said "TCCL INFO" 
no_warning
built one applied

step "two nodes"
joined two amd-4gpu:0,1 intel-4gpu:1,2 -- amd-4gpu --gpus 0,1 --node "$machines/intel-4gpu.json:1,2"
no_warning
built two applied

step "without the shim: not used"
joined unused amd-4gpu:0,1 -- amd-4gpu --gpus 0,1 --preload -
built unused "not used"

step "the user's own setting: not used"
joined own amd-4gpu:0,1 -- amd-4gpu --gpus 0,1 --set NCCL_P2P_DISABLE=1 --set NCCL_SHM_DISABLE=1 
built own "not used"
