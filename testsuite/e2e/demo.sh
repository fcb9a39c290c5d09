#!/bin/bash
# contrib/demo runs to its end and shows what it promises, briefly and with --all, and leaves nothing behind. Its times are
# those of a stock NCCL where one is built; else one line says how to have it. How long they are is no matter here.
# cluster: own
# level: all
. "$(dirname "$0")/lib.sh"

out=$(mktemp)
trap 'rm -f "$out"' EXIT

run_demo() { # OPTION...
    "$root/contrib/demo" "$@" </dev/null >"$out" 2>&1 || { cat "$out"; fail "the demo failed"; }
    cat "$out"
    folder=$(sed -n 's|.*\(/tmp/tccl-demo-[0-9]*\)/nodes.*|\1|p' "$out" | head -n 1)
    [ -n "$folder" ] || fail "the demo does not show its folder"
    eventually "the end of what the demo has started" none_left
    [ ! -e "$folder" ] || fail "$folder is left behind"
}
none_left() { ! grep -lsaz -- "$folder[/]" /proc/[0-9]*/cmdline; }

shows() { # PATTERN...
    local text
    for text; do
        grep -qE -- "$text" "$out" || fail "the demo does not show $text"
    done
}

# Briefly.
run_demo
lines=$(wc -l <"$out")
[ "$lines" -le 66 ] || fail "$lines lines, not about 60"
shows '\$ tcclacct ring' '(these rings|this ring) .* GB/s ' 'proven bound .* GB/s ' 'tccl: no ring: n3: no profile' \
    '^   JobID .*AchievedGBps' ' failed .*no profile' 'contrib/demo --all'
if "$root/testsuite/nccl/get-nccl" --built >/dev/null 2>&1; then
    shows 'Its tasks call NCCL' 'planned, and built by NCCL' '^   with rings +[0-9.]+ ms +[0-9.]+ GB/s +foretold +[0-9.]+$' \
        '^   NCCL alone +[0-9.]+ ms +[0-9.]+ GB/s +foretold +[0-9.]+$' '[0-9.]+ times as fast \(foretold [0-9.]+\)$'
else
    shows 'Its tasks call no NCCL: .*contrib/demo --nccl' 'not timed without an NCCL: contrib/demo --nccl'
fi

# All of it.
run_demo --all
shows 'TCCL_STATE=planned' 'TCCL_STATE=failed' '\[policy large\]' 'warn +peers' '\$ tcclacct summary' 'Outcome of the steps' '\.svg$'
# Each of several rings is in the table of the step's ring.
line=$(grep -m 1 "tccl: .*ring.* of 4 nodes, 16 GPUs: " "$out") || fail "no step of 4 nodes got its ring"
rings=1
[[ ! $line =~ ([0-9]+)\ rings ]] || rings=${BASH_REMATCH[1]}
equal "lines of the table" "$(sed -n '/The step.s ring (TCCL_RING)/,/NCCL.s own choice on/p' "$out" | grep -c 'mlx5_0.*->.*mlx5_0')" $((4 * rings))
