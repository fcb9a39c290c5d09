#!/bin/bash
# srun, sbatch and salloc show the option in their --help.
# cluster: mixed
# level: quick
. "$(dirname "$0")/lib.sh"

for program in srun sbatch salloc; do
    user $program --help >"$work/out"
    grep -e '--tccl' "$work/out" || fail "$program --help does not show --tccl"
done
