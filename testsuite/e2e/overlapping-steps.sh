#!/bin/bash
# Steps that share all nodes and all GPUs (--overlap) do not disturb each other's plans.
# cluster: mixed
# level: quick
. "$(dirname "$0")/lib.sh"

cat >"$work/job" <<JOB
#!/bin/bash
for step in 0 1 2; do
    srun -c 1 --overlap --ntasks-per-node=2 sh -c "$work/show; sleep 1; test -z \"\\\$TCCL_PLAN\" || cat \\\$TCCL_PLAN >/dev/null" &
done
wait
JOB
batch -w n1,n2 -N2 -c 8 --gpus-per-node=4 --tccl=on "$work/job"
for step in 0 1 2; do
    has_ring 4 $step
    as_solved $step n1:0-3 n2:0-3
    recorded "$job" $step state planned
done
equal "plan folders" "$(values TCCL_PLAN | sed 's,/[^/]*$,,' | sort -u | wc -l)" 6
