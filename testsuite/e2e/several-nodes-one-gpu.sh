#!/bin/bash
# One GPU on each of several nodes: a ring over the network ports alone, which has the other memory's
# where that is the faster one; on the usual machines NCCL's own ring is as good.
# cluster: own
# level: quick
. "$(dirname "$0")/lib.sh"

# A GPU whose own memory is half as fast as the one behind the other socket.
model=$(mktemp --tmpdir tccl-one-gpu-XXXXXX.json)
trap 'rm -f "$model"' EXIT
cat >"$model" <<'MODEL'
{"format": "tccl-model", "version": 1, "name": "one-gpu",
 "machine": {"memories": 2, "p2p": false, "gpudirect": false,
             "gpus": [{"busid": "0000:21:00.0", "model": "any", "numa": 0, "sm": 70}],
             "nics": [{"name": "mlx5_0", "busid": "0000:41:00.0", "numa": 0, "gbps": 20, "fabric": "ib0"}]},
 "resources": [{"name": "memory 0", "gbps": 20, "users": ["*>m0", "*<m0"]},
               {"name": "memory 1", "gbps": 40, "users": ["*>m1", "*<m1"]}]}
MODEL
own_cluster --nodes 4 --model "$model" --model "$models/intel-4gpu.json"
rm -f "$model"

srun_show -w n1,n2 -N2 --gpus-per-node=1 --ntasks-per-node=1 --tccl=on
has_ring 2
as_solved 0 n{1..2}:0
matches "the ring" "$(values TCCL_RING)" "*mlx5_0 -m1> 0 -m1> mlx5_0*"

srun_show -w n3,n4 -N2 --gpus-per-node=1 --ntasks-per-node=1 --tccl=on
equal "exit status" "$status" 0
equal "tasks" "$(tasks)" 2
all_have TCCL_STATE left
none_has TCCL_RING
none_has LD_PRELOAD
says "tccl: nothing to do: NCCL's own ring is as fast (*"
