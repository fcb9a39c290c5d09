#!/bin/bash
# The batch step itself, on one node: a ring over the node's GPUs of the job, without any srun.
# cluster: mixed
# level: quick
. "$(dirname "$0")/lib.sh"

cat >"$work/job" <<JOB
#!/bin/bash
$work/show
JOB
batch -w n1 -N1 --gpus-per-node=4 --tccl=on "$work/job"
has_ring 1 batch
as_solved batch n1:0-3
recorded "$job" batch state left # no GPUs were used together
recorded "$job" batch built ""
recorded "$job" batch gpus 4
