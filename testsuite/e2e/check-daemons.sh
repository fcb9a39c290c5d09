#!/bin/bash
# tccld stopped, hanging, under another name; munged hanging and gone: tccl-check names each, for the node
# itself and among its peers, ends in time, and has nothing to say of the rest.
# cluster: own
# level: all
. "$(dirname "$0")/lib.sh"

own_cluster --nodes 3

mini stop-tccld n2
check n2
equal "exit status" "$status" 1
item daemon fail '*no tccld at *n2/tccld.sock: *: start tccld*'
item peers warn '2 of 3 answer, not n2; n2: *refused*is its tccld running*'
item gpus ok "*, as Slurm has them; slurmd's list of them is not known without tccld*"
others_ok daemon peers
check n3
equal "exit status" "$status" 0
item peers warn '2 of 3 answer, not n2; *'
others_ok peers
check n3 --peers n2
item peers fail '0 of 1 answer, not n2; *'
user tccl-check --node n2 --timeout 60 --only daemon,peers >"$work/check" || true
item daemon fail '*start tccld*'
# An excluded node is not asked, but named.
cp "$cluster/tccl.conf" "$work/kept"
echo 'n2=down' >>"$cluster/tccl.conf"
check n3
equal "exit status" "$status" 0
item peers warn 'n2: excluded from rings by down in *tccl.conf*; 2 of 2 answer'
others_ok peers
cat "$work/kept" >"$cluster/tccl.conf"
mini start-tccld n2
check n2
others_ok

# AccountingHost is n1.
mini stop-tccld n1
check n3
equal "exit status" "$status" 1
item accounting fail 'n1: *refused*is its tccld running*'
item peers warn '2 of 3 answer, not n1; *'
others_ok accounting peers
mini start-tccld n1

mini stop-tccld n1
check n1
item accounting fail 'n1: no tccld at *: is its tccld running?'
mini start-tccld n1

kill -STOP "$(cat "$cluster/pid/tccld@n2")"
check n2
kill -CONT "$(cat "$cluster/pid/tccld@n2")"
equal "exit status" "$status" 1
item daemon fail '*no answer in time*'
item peers warn '2 of 3 answer, not n2; n2: no answer in time: *'
others_ok daemon peers

# One that calls itself otherwise does not answer to the node's name.
mini stop-tccld n2
sed 's/^n\[1-3\]=.*//' "$cluster/tccl.conf" >"$work/tccl.conf"
port=$(sed -nE 's/^n\[1-3\]=127.0.0.1:([0-9]+)-.*/\1/p' "$cluster/tccl.conf")
sed -i "s|^Socket=.*|Socket=$cluster/nodes/n2/tccld.sock|; s|nodes/%n|nodes/n2|" "$work/tccl.conf"
sed -i "s|^\[peers\]|Port=$((port + 1))\n&|" "$work/tccl.conf"
SLURM_CONF=$cluster/slurm.conf "$cluster/bin/tccld" --config "$work/tccl.conf" --node other 2>"$work/other.log" &
other=$!
eventually "the other tccld" test -S "$cluster/nodes/n2/tccld.sock"
check n2
kill "$other"
wait "$other" || true
item daemon fail '*answers at its socket, but not over TCP as node n2: *--node n2*'
item peers warn '2 of 3 answer, not n2; *'
others_ok daemon peers gpus # no slurmd is that node's
mini start-tccld n2

kill -STOP "$(cat "$cluster/pid/munged")"
check n1
kill -CONT "$(cat "$cluster/pid/munged")"
equal "exit status" "$status" 1
item munge fail '*what hangs is munged: restart it*'
others_ok munge daemon accounting peers loaded gpus isolation plugin

kill "$(cat "$cluster/pid/munged")"
eventually "munged's end" test ! -e "/proc/$(cat "$cluster/pid/munged")"
check n1
equal "exit status" "$status" 1
item munge fail '*start munged*'
item daemon fail '*see the item munge'
item peers fail '0 of 3 answer*munge*'
others_ok munge daemon accounting peers loaded gpus isolation plugin
