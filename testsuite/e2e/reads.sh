#!/bin/bash
# Rings that read by P2P: where that is faster, and beside a step whose writes would collapse with those of the next one. Only
# where no other process of the job can be on the node; a tccld that was killed meanwhile still knows what a step has.
# cluster: own
# level: quick
. "$(dirname "$0")/lib.sh"

faster=$(mktemp -d)
sed -E 's/("name": "g[0-9] reads g[0-9]", "gbps": )40.1/\145.0/' "$models/turin-pex890.json" >"$faster/reads.json"
own_cluster --nodes 1 --model "$faster/reads.json"
rm -rf "$faster"
chmod 1777 "$work"

# GPUs are given out in order: all are held by a job each, and those that a step is to have are let go.
holders=()
hold() { # GPU...: all that are free
    local gpu
    for gpu; do
        holders[gpu]=$(user sbatch --parsable -N1 -c 1 --gpus=1 -o /dev/null --wrap "sleep 1000")
        holding() { [ "$(user squeue -h -j "${holders[gpu]}" -o %t)" = R ]; }
        eventually "a job holds GPU $gpu" holding
    done
}
let_go() { # GPU...
    local gpu
    for gpu; do
        user scancel "${holders[gpu]}"
        gone() { [ -z "$(user squeue -h -j "${holders[gpu]}")" ]; }
        eventually "GPU $gpu is free" gone
    done
}
begin() { # SRUN-OPTION...: a step that runs until end
    rm -f "$work/first" "$work/over"
    user srun -N1 --gpus=2 "$@" sh -c "touch $work/first; until [ -e $work/over ]; do sleep 0.1; done" 2>"$work/first.err" &
    first=$!
    runs() { [ -e "$work/first" ]; }
    eventually "the first step" runs
}
end() {
    touch "$work/over"
    wait $first || fail "the first step: $(cat "$work/first.err")"
}
two=(-N1 --gpus=2 --tccl=on)

hold 0 1 2 3 4 5 6 7
let_go 0 4
echo "--- reading is faster"
srun_show "${two[@]}"
has_ring 1
matches TCCL_RING "$(values TCCL_RING)" 'n1\[0 -r> 4 -r> 0\]'
matches TCCL_GBPS "$(values TCCL_GBPS)" 45.00
plan() { cat "$cluster"/nodes/n1/run/*/plan; }

echo "--- beside a step that reads NCCL's own writes do not collapse; a tccld that was killed knows what it has"
begin --tccl=on
[[ "$(plan)" == *" -r> "* ]] || fail "the first step's plan has no chain that reads"
let_go 1 6
kill_tccld n1
mini start-tccld n1
srun_show "${two[@]}"
matches TCCL_STATE "$(values TCCL_STATE)" left
matches TCCL_BASELINE_GBPS "$(values TCCL_BASELINE_GBPS)" 25.60
end

hold 0 1 4 6
let_go 0 4
echo "--- NCCL's own rings write beside it: the second step reads, or both would have 1.35 GB/s"
begin --tccl=off
let_go 1 6
srun_show "${two[@]}"
has_ring 1
matches TCCL_RING "$(values TCCL_RING)" 'n1\[1 -r> 6 -r> 1\]'
matches TCCL_BASELINE_GBPS "$(values TCCL_BASELINE_GBPS)" 1.35
end

kinds() { # YES|NO SRUN-OPTIONS [BEFORE]: does such a step of a job of two tasks, with GPUs 0 and 4, read?
    printf '%s\n' "#!/bin/bash" "${3:-}" "srun $2 $work/show" "wait" >"$work/job"
    batch -N1 -n2 --gpus=2 --tccl=on "$work/job"
    case "$(values TCCL_RING)" in *" -r> "*) found=yes ;; *) found=no ;; esac
    equal "it reads ($2)" "$found" "$1"
}
hold 0 1 4 6
let_go 0 4
echo "--- other processes of the job can't come"
kinds yes "-n1"
echo "--- they may come: it has a part of the job's cores"
kinds no "--exact -n1 -c1"
echo "--- they are here"
kinds no "--overlap -n1" "srun --overlap sleep 5 & sleep 2"
user scancel -u nobody
eventually "no jobs left" no_jobs
