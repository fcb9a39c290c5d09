#!/bin/bash
# A node gets its profile as a tar archive of an equal node's folder, while its tccld runs: no ring before, a
# ring after it; one of real GPUs has to be checked first. A copy that was cut short is named by tccl-profile verify.
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
no_ring 2 '*n2*profile*'
tar -C "$cluster/nodes/n1/cache" -c "$id" | tar -C "$here" -x
verify || fail "the copy is not good: $(cat "$work/said")"
diff -r "$cluster/nodes/n1/cache/$id" "$here/$id" || fail "the copy differs"
step
has_ring 2

# One of real GPUs gives no ring before this node has looked.
sed -i.model 's/"source": *"model"/"source": "cuda"/' "$here/$id/profile.json"
step
no_ring 2 "*n2*the profile was neither measured nor checked on this node (no $here/checked/n2.json): tccl-profile verify --quick checks it in a minute"
mv "$here/$id/profile.json.model" "$here/$id/profile.json"
step
has_ring 2

# Does it hold here? What this node finds out is what its tccld goes by, until the profile is measured anew.
checked=$here/checked/n2.json
quick() {
    "$cluster/bin/tccl-profile" verify --quick --config "$cluster/tccl.conf" --node n2 --cache "$here" >"$work/said" 2>&1
}
at_end+=("rm -rf $here/checked")
quick || fail "the copy doesn't hold: $(cat "$work/said")"
matches "what verify --quick says" "$(tail -n 1 "$work/said")" "the profile holds"
equal "the verdict" "$(python3 -c 'import json, sys; v = json.load(open(sys.argv[1])); print(v["profile"], v["found"], v["worst"])' "$checked")" "$id holds 1.0"
step
has_ring 2
verdict() { # FOUND WORST WHEN
    printf '{"format": 1, "profile": "%s", "found": "%s", "worst": %s, "when": %s}' "$id" "$@" >"$checked"
}
verdict drifted 0.61 "$(date +%s)"
step
no_ring 2 '*n2*the profile does not hold here: on 20* a ring had 0.61 of what it was measured at*tccl-profile verify --quick*'
verdict drifted 0.9 "$(date +%s)" # too little to do without
step
has_ring 2
verdict drifted 0.61 1000000000 # measured anew since
step
has_ring 2
printf '{"format": 1, "profile' >"$checked"
step
has_ring 2
verdict drifted 0.61 "$(date +%s)"
quick || fail "the copy doesn't hold again: $(cat "$work/said")"
step
has_ring 2

size=$(stat -c %s "$here/$id/chains/0000000f.chains")
truncate -s $((size / 2)) "$here/$id/chains/0000000f.chains"
! verify || fail "half a file passed for a good one"
matches "what verify says" "$(cat "$work/said")" "tccl: *chains/0000000f.chains: *"
