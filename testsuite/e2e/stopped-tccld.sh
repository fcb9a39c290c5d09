#!/bin/bash
# The first node's or another node's tccld is stopped: the job runs without a ring on all nodes, one
# line says why; where a tccld is left that can, a record does too.
# cluster: mixed
# level: quick
. "$(dirname "$0")/lib.sh"

at_end+=("mini start-tccld n1 || true" "mini start-tccld n3 || true")
for node in n3 n1; do
    mini stop-tccld $node
    srun_show -N4 --gpus-per-node=4 --ntasks-per-node=2 --tccl=on
    equal "exit status" "$status" 0
    equal "tasks" "$(tasks)" 8
    all_have TCCL_STATE failed
    none_has TCCL_RING
    says 'tccl: no ring: *tccld*'
    job=$(job_of)
    mini start-tccld $node
    [ $node = n1 ] || recorded "$job" 0 state failed
done
srun_show -N4 --gpus-per-node=4 --ntasks-per-node=2 --tccl=on
has_ring 8
