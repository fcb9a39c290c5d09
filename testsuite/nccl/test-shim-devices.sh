#!/bin/bash
# GPUs that processes see under other numbers: fixed cases, and a CUDA_VISIBLE_DEVICES by chance for each (TCCL_SEED repeats,
# TCCL_CASES: how many); jobs under mpirun and torchrun, where Slurm's variables of all processes are those of one task.
# level: all
. "$(dirname "${BASH_SOURCE[0]}")/shim.sh"

make_plans "dual-8gpu:0,2,3=0 -w> 3 -m0> 2 -m1> 0"
seen() { # WHAT OPTION...
    step "$1"
    shift
    run_planned dual-8gpu "$@"
    as_planned
    no_warning
}

seen "each process its own GPU only" --gpus 0,2,3 --own-only
seen "one task for all, as under torchrun" --gpus 0,2,3 --set SLURM_PROCID=0 --set SLURM_LOCALID=0 --set SLURM_NTASKS=1
seen "a task id that differs, as under mpirun" --gpus 0,2,3 --set SLURM_PROCID=0 --set SLURM_TASK_PID=1 --set OMPI_COMM_WORLD_SIZE=3

step "GPUs of which one is not the step's"
as_alone dual-8gpu --gpus 0,2,5
said WARN
step "fewer GPUs than the step's"
as_alone dual-8gpu --gpus 0,3
said WARN
step "more GPUs than the step's"
as_alone dual-8gpu --gpus 0-3
said WARN

# Each process has a list of its own: its GPU at some place in it, by number or UUID or the beginning of one, some or all of the others in
# any order, entries that cut the list off, and sometimes one twice, which leaves it no GPU; now and then two processes have one GPU.
cat >"$work/choose" <<'PYTHON'
import random, sys
sys.dont_write_bytecode = True
names, seed, count = sys.argv[1].split(","), int(sys.argv[2]), int(sys.argv[3])
choose = random.Random(seed)
def entry(gpu):
    return choose.choice([str(gpu), names[gpu], names[gpu][:choose.randrange(12, 30)]])
for case in range(count):
    gpus, options = choose.sample([0, 2, 3], 3), []
    if choose.random() < 0.15:
        gpus[1] = gpus[0]
    for rank, gpu in enumerate(gpus):
        others = choose.sample([other for other in range(8) if other != gpu], choose.randrange(0, 8))
        place = choose.randrange(len(others) + 1)
        words = [entry(other) for other in others[:place]] + [entry(gpu)] + [entry(other) for other in others[place:]]
        if choose.random() < 0.3:
            words.insert(choose.randrange(place + 1, len(words) + 1), choose.choice(["-1", "8", "99", "GPU-0", "none", "2x", ""]))
        if choose.random() < 0.05:
            words.append(words[0])
        options += ["--at", f"{rank}:CUDA_VISIBLE_DEVICES={','.join(words)}", "--at", f"{rank}:DEVICE={place}"]
    print("same" if len(set(gpus)) < 3 else "all", *options)
PYTHON
printf '#!/bin/sh\nexec "$@" --device "$DEVICE"\n' >"$work/device"
chmod 755 "$work/device"
seed=${TCCL_SEED:-$RANDOM} built=0
echo "TCCL_SEED=$seed"
"$here/describe-machine" "$machines/dual-8gpu.json" "$work/machine"
names=$(awk '$1 == "gpu" {print $5}' "$work/machine/devices" | paste -sd,)
python3 "$work/choose" "$names" "$seed" "${TCCL_CASES:-6}" >"$work/cases"
while read -ra words; do
    step "case $((cases = ${cases:-0} + 1)): ${words[*]//CUDA_VISIBLE_DEVICES=/}"
    options=(dual-8gpu --gpus 0,2,3 --under "$work/device" --timeout 120 "${words[@]:1}")
    make_plans "dual-8gpu:0,2,3=0 -w> 3 -m0> 2 -m1> 0"
    mapfile -t with < <(with_plans)
    if ! "$here/run-ring" "$machines/dual-8gpu.json" "${options[@]:1}" "${with[@]}" >"$work/rings" 2>"$work/errors"; then
        ! "$here/run-ring" "$machines/dual-8gpu.json" "${options[@]:1}" >"$work/alone" 2>&1 ||
            { cat "$work/errors"; fail "$what: NCCL alone makes its communicator"; }
        echo "fails, as NCCL alone does"
    elif "$here/compare-plan" "$work/rings" "comm 0" "${plans[@]}" >"$work/differs" && no_warning; then
        built=$((built + 1))
    else
        as_alone "${options[@]}"
        said WARN
    fi
done <"$work/cases"
[ "$built" -gt 0 ] || [ -n "${TCCL_CASES:-}" ] || fail "no case was built as planned"
