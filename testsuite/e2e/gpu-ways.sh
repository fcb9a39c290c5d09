#!/bin/bash
# Ways to ask for GPUs, as the table in tccl(7) has them, and what each gets: a ring or one line that says why not. TCCL= reaches steps
# that have nothing of the user's environment.
# cluster: own
# level: all
. "$(dirname "$0")/lib.sh"

own_cluster --nodes 2 --slurm-conf GresTypes=gpu,shard,mps
sed -i 's/Gres=gpu:4/Gres=gpu:a:2,gpu:b:2,shard:8/' "$cluster/slurm.conf"
cat >"$cluster/gres.conf" <<CONF
NodeName=n[1-2] Name=gpu Type=a File=$cluster/dev/gpu[0-1]
NodeName=n[1-2] Name=gpu Type=b File=$cluster/dev/gpu[2-3]
NodeName=n[1-2] Name=shard Count=8
CONF

# GPUs of the ring on n1.
ring_gpus() {
    values TCCL_RING | sed -E 's/.*n1\[([^]]*)\].*/\1/' | tr -s ' ' '\n' | grep -xE '[0-9]+' | sort -u | wc -l
}

row() { # WHAT-IT-GETS SRUN-OPTION...
    local what=$1
    shift
    echo "== $*"
    srun_show -N$nodes --tccl=on "$@"
    equal "exit status" "$status" 0
    case $what in
    ring-*)
        all_have TCCL_STATE planned
        equal "GPUs on n1" "$(ring_gpus)" "${what#ring-}"
        ;;
    none)
        all_have TCCL_STATE failed
        none_has LD_PRELOAD
        says "tccl: no ring: $reason (NCCL's own choice is used)"
        recorded "$(job_of)" 0 state failed
        ;;
    own-*) # by NCCL 2.30.3 or later, over so many GPUs, without P2P
        all_have TCCL_STATE planned
        equal "GPUs on n1" "$(ring_gpus)" "${what#own-}"
        case $(values TCCL_RING) in *-w\>* | *-r\>*) fail "the ring has P2P between tasks that see only their own GPUs" ;; esac
        eventually "a record of $(job_of)" has_record "$(job_of)" 0
        equal "GB/s on record" "$(printf %.2f "$(record "$(job_of)" 0 gbps)")" "$(values TCCL_GBPS)"
        says "tccl: *ring* of $over: *x), by a model, with NCCL 2.30.3 or later: with $option each task sees only its own GPUs; for all versions, use --gpus-per-node=4 without it"
        none_has TCCL_REASON
        ;;
    nothing) none_has TCCL_RING ;;
    esac
}

refused() { # SRUN-OPTION...
    srun_show -N$nodes --tccl=require "$@"
    [ "$status" != 0 ] || fail "require: srun $* ended with 0"
    equal "tasks" "$(tasks)" 0
    says "tccl: no ring: $reason (the step ends, because a ring is required)"
}

restart_slurm
nodes=2

# Each task sees all GPUs of the step on its node.
row ring-4 --gres=gpu:4 -n2
row ring-2 --gres=gpu:a:2 -n2
row ring-4 --gres=gpu:a:2,gpu:b:2 -n2
row ring-4 --gpus=8 -n2
row ring-4 --gpus-per-node=4 -n8
row ring-2 --gpus-per-socket=2 --sockets-per-node=1 -n2
row ring-4 --gpus-per-node=4 -n2 --gpu-bind=none
row ring-4 --gpus-per-task=4 -n2
row ring-4 --gpus-per-node=4 -n4 --gpu-bind=verbose,mask_gpu:0xf
row ring-4 --gpus-per-node=4 -n4 --gpu-bind=closest
CUDA_VISIBLE_DEVICES=1,0 row ring-4 --gpus-per-node=4 -n2
row nothing --exclusive -n2
says "tccl: no ring: no GPUs in this step (NCCL's own choice is used)"

# Only its own, by CUDA_VISIBLE_DEVICES: NVML knows them all, and rings are built.
own="--gpus-per-task=1 --ntasks-per-node=4"
row ring-4 $own
row ring-4 --gpus-per-node=4 -n8 --gpu-bind=single:1
case $(values TCCL_RING) in *-w\>*) ;; *) fail "the best ring of two nodes has no P2P" ;; esac

# The same with ConstrainDevices. slurmd has not read this: what counts here is what the plugin makes of it.
cp "$cluster/cgroup.conf" "$work/cgroup.conf"
echo ConstrainDevices=yes >>"$cluster/cgroup.conf"
sed -i 's,^TaskPlugin=.*,TaskPlugin=task/cgroup,' "$cluster/slurm.conf"
with() { # OPTION
    option=$1
    reason="n1: with $1 each task sees only its own GPUs (ConstrainDevices), and not every NCCL can build a ring then: use --gpus-per-node=4 without it"
}
with --gpus-per-task=1
over="2 nodes, 8 GPUs" # the best ring has P2P
row own-4 $own
refused $own
nodes=1 over="4 GPUs"
row own-4 $own
row own-4 --gpus-per-t 1 --ntasks-per-node=4
refused $own
SLURM_GPUS_PER_TASK=1 row own-4 -n4 --gpus-per-node=4
for bind in single:1 single:2 map_gpu:0,1,2,3 mask_gpu:1,2,4,8 per_task:1 verbose,single:1; do
    [ $bind != per_task:1 ] || slurmd -V | grep -v ' 22\.' >/dev/null || continue # not known then
    with "--gpu-bind=$bind"
    row own-4 --gpus-per-node=4 -n4 "--gpu-bind=$bind"
done
with --gpu-bind=single:1
refused --gpus-per-node=4 -n4 --gpu-bind=single:1
with --ntasks-per-gpu=1
row own-4 --ntasks-per-gpu=1 --gpus-per-node=4
if ! slurmd -V | grep ' 22\.' >/dev/null; then
    with --tres-per-task=gres/gpu:1
    row own-4 --tres-per-task=gres/gpu:1 --ntasks-per-node=4
fi
row ring-4 --gpus-per-node=4 -n4
row ring-4 --gpus-per-node=4 -n4 --gpu-bind=none
row ring-4 --gpus-per-task=4 -n1
nodes=2
cat >"$work/job" <<JOB
#!/bin/bash
srun $work/show
JOB
with --gpus-per-task=1
batch -N1 --ntasks-per-node=4 --gpus-per-task=1 --tccl=on "$work/job"
all_have TCCL_STATE planned 0
cp "$work/cgroup.conf" "$cluster/cgroup.conf"
sed -i 's,^TaskPlugin=.*,TaskPlugin=task/none,' "$cluster/slurm.conf"

# Parts of GPUs.
reason="n1: the step has shards of GPUs (--gres=shard), and rings are over whole GPUs: use --gpus-per-node"
row none --gres=shard:2 -n2
refused --gres=shard:2 -n2
sed -i 's/,shard:8/,mps:400/' "$cluster/slurm.conf"
sed -i 's/Name=shard Count=8/Name=mps Count=400/' "$cluster/gres.conf"
restart_slurm
reason="n1: the step has a share of a GPU by MPS (--gres=mps), and rings are over whole GPUs: use --gpus-per-node"
row none --gres=mps:50 -n2
refused --gres=mps:50 -n2

# TCCL= where nothing else of the environment is passed on, and what goes before it.
for export in NONE HOME; do
    TCCL=on srun_show -N2 -n2 --gpus-per-node=4 --export=$export
    has_ring 2
    TCCL=on srun_show -N2 -n2 --gpus-per-node=4 --export=$export --tccl=off
    none_has TCCL_STATE
done
cat >"$work/job" <<JOB
#!/bin/bash
srun --ntasks-per-node=1 $work/show
TCCL=off srun --ntasks-per-node=1 $work/show
JOB
TCCL=on batch --export=NONE -N2 --gpus-per-node=4 "$work/job"
all_have TCCL_STATE planned 0
none_has TCCL_STATE 1
