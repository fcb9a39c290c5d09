#!/bin/bash
# Two steps run at once on the same nodes, each with its own GPUs: each has its own ring over these, and is at least as
# fast beside the other one as NCCL's own would be there; the one that comes second may have nothing to gain.
# (e2e/neighbours starts them one after the other.)
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
rings=0
ring_gpus() { # STEP
    values TCCL_RING "$1" | grep -oE '> [0-9]+ ' | tr -dc '0-9\n' | sort -u | xargs
}
for step in 0 1; do
    state=$(values TCCL_STATE $step)
    recorded "$job" $step state "$state"
    recorded "$job" $step gpus 4
    equal "tasks" "$(tasks $step)" 2
    [ "$state" != left ] || continue
    has_ring 2 $step
    rings=$((rings + 1))
    equal "GPUs of step $step" "$(ring_gpus $step)" "$((2 * step)) $((2 * step + 1))"
    python3 -c 'import sys; sys.exit(not float(sys.argv[1]) > float(sys.argv[2]))' "$(values TCCL_GBPS $step)" \
        "$(values TCCL_BASELINE_GBPS $step)" || fail "step $step: no faster than NCCL"
done
[ $rings -ge 1 ] || fail "neither has a ring"
