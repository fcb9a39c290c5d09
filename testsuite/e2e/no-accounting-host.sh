#!/bin/bash
# Without AccountingHost each first node keeps its own records, and tcclacct says that it sees this
# node only.
# cluster: own
# level: quick
. "$(dirname "$0")/lib.sh"

own_cluster --nodes 2
sed -i '/^AccountingHost=/d' "$cluster/tccl.conf"
for node in n1 n2; do
    mini stop-tccld $node
    mini start-tccld $node
done
srun_show -N2 --gpus-per-node=4 --ntasks-per-node=1 --tccl=on
has_ring 2
both=$(job_of)
srun_show -w n2 -N1 --gpus-per-node=4 --ntasks-per-node=1 --tccl=on
has_ring 1
second=$(job_of)
seen_on() { # NODE
    admin tcclacct --node "$1" -nP -o jobid -S now-1hour 2>"$work/err" | xargs
}
kept() { [ "$(seen_on n1)" = "$both.0" ] && [ "$(seen_on n2)" = "$second.0" ]; }
eventually "each record on its first node" kept
seen_on n1
grep -q 'tccl: .*node' "$work/err" || fail "tcclacct does not say that it sees one node only"
cat "$work/err"
