#!/bin/bash
# A step over 32 nodes of two kinds: one ring through all.
# cluster: wide
# level: quick
. "$(dirname "$0")/lib.sh"

srun_show -N32 --gpus-per-node=4 --ntasks-per-node=1 --tccl=on
equal "exit status" "$status" 0
has_ring 32
as_solved 0 n{1..32}:0-3
recorded "$(job_of)" 0 n_nodes 32
recorded "$(job_of)" 0 gpus 128
ring=$(values TCCL_RING)
equal "ring in the record" "$(record "$(job_of)" 0 ring)" "$ring"
[ ${#ring} -le 4096 ] || fail "a ring of ${#ring} bytes"
n=$(record "$(job_of)" 0 rings)
matches "equal nodes are written once" "$ring" "n1[[]mlx5_0 * n2[[]= n1] *n32[[]= n17]"
matches "drawing of $n rings" "$(admin tcclacct ring "$(job_of)")" "*n[[]1-16]*n[[]17-32]*"
