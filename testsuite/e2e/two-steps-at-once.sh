#!/bin/bash
# Two steps run at once on the same nodes, each with its own GPUs: each has its own ring over these.
# cluster: mixed
# level: quick
. "$(dirname "$0")/lib.sh"

cat >"$work/job" <<JOB
#!/bin/bash
for step in 0 1; do
    srun -c 1 --exact --ntasks-per-node=1 --gpus-per-node=2 timeout 300 \
        sh -c "$work/show; until [ \\\$(ls $work/seen | wc -l) = 4 ]; do sleep 0.1; done" &
done
wait
JOB
batch -w n1,n2 -N2 -c 8 --gpus-per-node=4 --tccl=on "$work/job"
for step in 0 1; do
    applied 2 $step
    recorded "$job" $step state applied
    recorded "$job" $step gpus 4
done
as_solved 0 n1:0-1 n2:0-1
as_solved 1 n1:2-3 n2:2-3
