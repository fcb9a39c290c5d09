#!/bin/bash
# A machine that is not what its profile says, as its users and administrators see it: steps under srun on a minicluster, whose copies take
# as long as the true machine makes them take (a model that tccld does not know). What they achieve is on record: near to what tccl-path
# says of the true machine and this ring, and never beyond it, whatever the profile promises.
# level: quick
. "$(dirname "${BASH_SOURCE[0]}")/truth.sh"

readonly slower=100 train="--check --times 2 --collective all-reduce:16777216:f32 --collective all-reduce:16777216:f32"
begin_cluster

step "the profile is true"
make_model "$home/true.json"
truth "$home/true.json"
achieves --tccl=on
of_record 'r["built"] == "yes" and r["samples"] >= 4'

step "one memory is far slower"
make_model "$home/true.json" "m2 memory=0.2"
truth "$home/true.json"
achieves --tccl=on
of_record 'r["built"] == "yes" and r["gbps"] > r["baseline_gbps"] and r["achieved_gbps"] < 0.5 * r["gbps"]'
