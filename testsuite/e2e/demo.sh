#!/bin/bash
# contrib/demo runs to its end, shows what it promises, and leaves nothing behind.
# cluster: own
# level: all
. "$(dirname "$0")/lib.sh"

out=$(mktemp)
trap 'rm -f "$out"' EXIT
"$root/contrib/demo" </dev/null >"$out" 2>&1 || { cat "$out"; fail "the demo failed"; }
cat "$out"
for text in 'TCCL_STATE=applied' '\[policy large\]' 'warn *peers' 'GB/s' 'ratio' 'fallback' 'tcclacct' '\.svg'; do
    grep -qi -- "$text" "$out" || fail "the demo does not show $text"
done
equal "processes after the demo" "$(grep -lsaz -- "tccl-demo[-]" /proc/[0-9]*/cmdline | wc -l)" 0
