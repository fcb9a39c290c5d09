#!/bin/bash
# A node gets its profile as a tar archive of an equal node's folder, while its tccld runs: no ring before, a
# ring after it. A copy that was cut short is named by tccl-profile verify.
# cluster: mixed
# level: all
. "$(dirname "$0")/lib.sh"

id=$(basename "$(dirname "$(find "$cluster/nodes/n1/cache" -name profile.json)")")
here=$cluster/nodes/n2/cache
mv "$here/$id" "$work/away"
at_end+=("rm -rf $here/$id; mv $work/away $here/$id")

step() {
    srun_show -w n1,n2 -N2 --gpus-per-node=4 --ntasks-per-node=1 --tccl=on
    equal "exit status" "$status" 0
}

verify() {
    "$cluster/bin/tccl-profile" verify --cache "$here" "$here/$id" 2>"$work/said"
}

step
fallback 2 '*n2*profile*'
tar -C "$cluster/nodes/n1/cache" -c "$id" | tar -C "$here" -x
verify || fail "the copy is not good: $(cat "$work/said")"
diff -r "$cluster/nodes/n1/cache/$id" "$here/$id" || fail "the copy differs"
step
applied 2

size=$(stat -c %s "$here/$id/chains/0000000f.chains")
truncate -s $((size / 2)) "$here/$id/chains/0000000f.chains"
! verify || fail "half a file passed for a good one"
matches "what verify says" "$(cat "$work/said")" "tccl: *chains/0000000f.chains: *"
