# data.sh: what the tests share that look at the data of collectives.
. "$(dirname "${BASH_SOURCE[0]}")/shim.sh"

readonly reducing="all-reduce reduce-scatter reduce" copying="all-gather broadcast all-to-all"
collectives=(--check --everywhere)

add() { # KINDS SIZES TYPES [OPERATIONS]: to the collectives
    local kind size type op
    for kind in $1; do
        for size in $2; do
            for type in $3; do
                for op in ${4:-sum}; do
                    collectives+=(--collective "$kind:$size:$type:$op")
                done
            done
        done
    done
}

right() { # [FILE [ALONE [--every-bit]]]: all results (see compare-data)
    "$here/compare-data" "${@:-$work/rings}" || { show_log; fail "${what:-}: wrong data"; }
}
