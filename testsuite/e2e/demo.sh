#!/bin/bash
# contrib/demo runs to its end, shows what it promises, and leaves nothing behind.
# cluster: own
# level: all
. "$(dirname "$0")/lib.sh"

out=$(mktemp)
trap 'rm -f "$out"' EXIT
"$root/contrib/demo" </dev/null >"$out" 2>&1 || { cat "$out"; fail "the demo failed"; }
cat "$out"
for text in 'TCCL_STATE=planned' '\[policy large\]' 'warn *peers' 'GB/s' 'ratio' 'failed' 'tcclacct' '\.svg'; do
    grep -qi -- "$text" "$out" || fail "the demo does not show $text"
done
# Each of several rings is in the table of the step's ring, and the ratio is that of the line to the user.
line=$(grep -m 1 "tccl: .*ring.* of 4 nodes, 16 GPUs: " "$out")
rings=1
[[ ! $line =~ ([0-9]+)\ rings ]] || rings=${BASH_REMATCH[1]}
equal "lines of the table" "$(sed -n '/The step.s ring (TCCL_RING)/,/NCCL.s own choice on/p' "$out" | grep -c 'mlx5_0.*->.*mlx5_0')" $((4 * rings))
[[ $line =~ ([0-9.]+)x ]] && grep -q "ratio ${BASH_REMATCH[1]}\$" "$out" || fail "the ratio is not that of: $line"
folder=$(grep -om 1 '/tmp/tccl-demo-[0-9]*' "$out")
none_left() { ! grep -lsaz -- "$folder[/]" /proc/[0-9]*/cmdline; }
eventually "the end of what the demo has started" none_left
