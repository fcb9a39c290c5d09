#!/bin/bash
# One of two nodes has no plugin (its plugstack.conf does not name it), and the step there has begun and ended before
# anybody asks, as `srun true` does: the other node is told why and does not wait for Timeout=. The node without the plugin
# is the second one, then the first one.
# cluster: own
# level: quick
. "$(dirname "$0")/lib.sh"

own_cluster --nodes 2
stack=$cluster/plugstack.conf
: >"$work/nothing"
printf '#!/bin/sh\nmount --make-rprivate / && mount --bind "$1" "$2" && shift 2 && exec "$@"\n' >"$work/instead"
chmod 755 "$work/instead"
trap 'status=$?; kill $(<"$cluster/nodes/$node/tccld.sock.lock") 2>/dev/null || true; end_own_cluster "$cluster" $status' EXIT

# slurmd and tccld of the node see an empty plugstack.conf.
without_plugin() { # NODE
    kill "$(<"$cluster/pid/slurmd@$1")"
    eventually "end of slurmd" test ! -e "/proc/$(<"$cluster/pid/slurmd@$1")"
    mini stop-tccld "$1"
    admin setsid unshare -m "$work/instead" "$work/nothing" "$stack" slurmd -D -N "$1" -f "$cluster/slurm.conf" \
        </dev/null >>"$cluster/log/slurmd@$1.out" 2>&1 &
    eventually "slurmd" sh -c "pgrep -ofx 'slurmd -D -N $1 -f $cluster/slurm.conf' >$cluster/pid/slurmd@$1"
    admin setsid unshare -m "$work/instead" "$work/nothing" "$stack" tccld --config "$cluster/tccl.conf" --node "$1" \
        </dev/null >>"$cluster/log/tccld@$1.out" 2>&1 &
    eventually "tccld" test -S "$cluster/nodes/$1/tccld.sock"
    nodes_are_up
}

with_plugin() { # NODE
    kill "$(<"$cluster/nodes/$1/tccld.sock.lock")" "$(<"$cluster/pid/slurmd@$1")"
    eventually "end of slurmd" test ! -e "/proc/$(<"$cluster/pid/slurmd@$1")"
    eventually "end of tccld" test ! -S "$cluster/nodes/$1/tccld.sock"
    mini start-tccld "$1"
    start_slurm "slurmd@$1" slurmd -N "$1"
    nodes_are_up
}

printf '#!/bin/sh\necho "job $SLURM_JOB_ID"\n' >"$work/short"
chmod 755 "$work/short"
for node in n2 n1; do
    echo "--- $node has none"
    without_plugin $node
    missing="$node: Slurm has no plugin there: $stack does not name spank_tccl.so"
    status=0
    user srun -N2 --gpus-per-node=4 --tccl=on "$work/short" >"$work/out" 2>"$work/err" || status=$?
    cat "$work/out" "$work/err"
    equal "exit status" "$status" 0
    equal "tasks" "$(grep -c '^job' "$work/out")" 2
    recorded "$(sed -n 's/^job //p;T;q' "$work/out")" 0 reason "$missing"
    [ $node = n1 ] || says "tccl: no ring: $missing (NCCL's own choice is used)"
    echo "--- and a ring is required"
    status=0
    user srun -N2 --gpus-per-node=4 --tccl=require "$work/short" >"$work/out" 2>"$work/err" || status=$?
    cat "$work/out" "$work/err"
    [ "$status" != 0 ] || fail "srun ended with 0"
    case $node in # where the first one has none, srun says it
    n2) grep -qF "tccl: no ring: $missing" "$work/err" ;;
    n1) grep -q "tccl: n1: no plugin has spoken for step .*: $stack does not name spank_tccl.so" "$work/err" ;;
    esac || fail "the user is not told that $node has no plugin"
    with_plugin $node
done
