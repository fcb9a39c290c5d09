# sets.sh: what the tests of ring sets share.
. "$(dirname "${BASH_SOURCE[0]}")/shim.sh"

# Launches between nodes are refused, once for each rank.
run_quietly() {
    run_planned "$@" 2> >(grep -v "a kernel launch refused" >&2)
}

# On so many nodes NCCL built each ring edge by edge and NIC by NIC, and the shim says so after the first collective.
built() { # NODES
    as_planned
    said "TCCL INFO communicator .*: rings .* \| .*; model, .*graph file" "$1"
    said "TCCL INFO communicator .*: built as planned" "$1"
    said "TCCL WARN ([^b]|b[^u])" 0
}

best() { # MODEL NODES [MODEL]...: the best set, of so many nodes and one of each other model
    step "$*"
    local names=() more=() i other
    for ((i = 0; i < $2; i++)); do names+=("$1"); done
    for other in "${@:3}"; do more+=(--node "$machines/$other.json"); done
    make_plans --rings auto "${names[@]}" "${@:3}"
    run_quietly "$1" --nodes "$2" "${more[@]}"
    built $(($2 + $# - 2))
}
