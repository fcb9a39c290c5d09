#!/bin/bash
# Oversized, malformed, forged and replayed messages and silent peers on both sockets of a tccld: it
# refuses them, keeps running, and serves the next step.
# cluster: mixed
# level: quick
. "$(dirname "$0")/lib.sh"

before=$(cat "$cluster/pid/tccld@n2")
admin python3 "$here/poke.py" "$cluster" n2
[ -e "/proc/$before" ] || fail "tccld ended"
srun_show -w n1,n2 -N2 --gpus-per-node=4 --ntasks-per-node=1 --tccl=on
has_ring 2
recorded "$(job_of)" 0 state planned
