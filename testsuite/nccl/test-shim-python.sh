#!/bin/bash
# Python programs that have NCCL by ctypes alone, as vLLM and others: their communicators are built as planned, in cuMem
# mode and in the older one; also by two NCCLs at a time, by nccl4py, and by PyTorch and JAX, if they are kept (test-packages.sh --get). Where one rank passes the shim by, all of them are left alone.
# level: quick
. "$(dirname "${BASH_SOURCE[0]}")/shim.sh"

printf '#!/bin/sh\nexec "%s" "%s" "$@"\n' "$(command -v python3)" "$here/by-ctypes" >"$work/by-ctypes"
chmod 755 "$work/by-ctypes"
new_step() {
    make_plans "dual-8gpu:0,2,3=0 -w> 3 -m0> 2 -m1> 0"
}
new_step
some=(dual-8gpu --gpus 0,2,3 --program "$work/by-ctypes")

for cumem in on off; do
    step "a communicator by ctypes, cuMem $cumem"
    run_planned "${some[@]}"
    as_planned
    no_warning
    said "built as planned" 1
done

# In the same step, whose programs before had the shim in all ranks.
cumem=on
step "one rank that passes the shim by"
as_alone "${some[@]}" -- --unseen 1
said "TCCL WARN no ring for this process: its calls to NCCL" 1
said "NCCL's own choice: only 2 local ranks are known: do others run without the shim (LD_PRELOAD)?"

# Both write to one log, of which the last one stays: what was built is as it is for one.
new_step
step "two NCCLs at a time, each by its own handle"
cp "$rig/lib/libnccl.so.2" "$work/libnccl-second.so"
mapfile -t options < <(with_plans)
run_ring "$work/rings" "${some[@]}" "${options[@]}" -- --second "$work/libnccl-second.so"
said "of 3 ranks, 3 here: ring 0000:1a:00.0 -w> 0000:3e:00.0 -m0> 0000:3d:00.0" 2

step "NVIDIA's own bindings"
if folder=$(TCCL_WHEEL_SECONDS=100 "$here/get-python" nccl4py-0.6.0 nccl4py==0.6.0 cuda-pathfinder==1.9.0 packaging numpy 2>"$work/why"); then
    new_step
    run_planned "${some[@]}" --set PYTHONPATH="$folder" -- --nccl4py
    as_planned
    no_warning
    said "built as planned" 1
else
    echo "left out: $(tail -n 1 "$work/why")"
fi

# With the NCCL and the CUDA runtime that PyTorch brings, also JAX.
by_package() { # --torch or --jax, NAME=VALUE...
    local settings=(--set PYTHONPATH="$folder" --set LD_LIBRARY_PATH="$libraries") setting
    step "$1"
    for setting in "${@:2}"; do settings+=(--set "$setting"); done
    new_step
    run_planned "${some[@]}" --launch nothing "${settings[@]}" -- "$1" # their own kernels can't run
    as_planned
    no_warning
    said "built as planned" 1
}
mkdir "$work/lib"
cp -P "$rig"/lib/lib{cuda.so.1,nvidia-ml.so.1,ibverbs.so*} "$work/lib/"
libraries=$work/lib
folder=$("$here/get-python" --kept torch-2.15.0 torch 2>&1) || { echo "left out: $folder"; exit 0; }
by_package --torch
for library in "$folder"/nvidia/*/lib; do libraries+=:$library; done
jax=$("$here/get-python" --kept jax-0.10.2 jax 2>&1) || { echo "left out: $jax"; exit 0; }
folder=$jax:$folder
# CUPTI, which JAX would ask for its version, calls itself without end where the driver lacks a table of its own.
by_package --jax JAX_PLATFORMS=cuda JAX_SKIP_CUDA_CONSTRAINTS_CHECK=1 XLA_PYTHON_CLIENT_PREALLOCATE=false TF_CPP_MIN_LOG_LEVEL=3
