#!/bin/bash
# NCCL's own rings on recorded machines are those that we take for the baseline for what tccl-profile finds there.
# level: all
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

models=()
for name in broadwell-2p100 epyc-nps4-4a100 power9-4v100 sandybridge-3gpu; do
    "$TCCL_BUILD/profiler/tccl-profile" show --topology "$here/../topologies/$name.xml" --json >"$work/found"
    python3 -c 'import json, sys; print(json.dumps({"machine": {**json.load(sys.stdin)["machine"], "name": "'$name'"}}))' \
        <"$work/found" >"$work/$name.json"
    models+=("$work/$name.json")
done
"$here/check-baseline" "$work" "${models[@]}" --subsets 0 || no_ring $? "NCCL chooses otherwise"
