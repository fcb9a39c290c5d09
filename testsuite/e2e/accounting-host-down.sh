#!/bin/bash
# AccountingHost is down while steps run: their records wait where they arise and delivered
# once, later.
# cluster: own
# level: all
. "$(dirname "$0")/lib.sh"

own_cluster --nodes 3
mini stop-tccld n1
jobs=()
for round in 1 2; do
    srun_show -w n2,n3 -N2 --gpus-per-node=4 --ntasks-per-node=1 --tccl=on
    has_ring 2
    jobs+=("$(job_of)")
done
spooled() { [ "$(outboxes)" = 4 ]; }
eventually "two records in an outbox, and that no ring was built" spooled
mini stop-tccld n2
mini start-tccld n2
mini start-tccld n1
for job in "${jobs[@]}"; do recorded "$job" 0 state planned; done
for job in "${jobs[@]}"; do recorded "$job" 0 built "no call"; done
unspooled() { [ "$(outboxes)" = 0 ]; }
eventually "an empty outbox" unspooled
for job in "${jobs[@]}"; do
    records -j "$job"
    equal "records of job $job" "$(admin tcclacct -nP -o jobid -j "$job" | wc -l)" 1
done
