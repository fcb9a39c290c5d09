#!/bin/bash
# Where NCCL's own ring is as fast as the best one, a step is left to it, and told why; a required
# ring is no reason to fail, and mode auto says nothing.
# cluster: own
# level: quick
. "$(dirname "$0")/lib.sh"

# Two GPUs that can only go through the one memory: there is one ring.
model=$(mktemp --tmpdir tccl-plain-XXXXXX.json)
trap 'rm -f "$model"' EXIT
cat >"$model" <<'MODEL'
{"format": "tccl-model", "version": 1, "name": "plain-2gpu",
 "machine": {"memories": 1, "p2p": false,
             "gpus": [{"busid": "0000:21:00.0", "model": "any", "numa": 0, "sm": 70},
                      {"busid": "0000:22:00.0", "model": "any", "numa": 0, "sm": 70}]},
 "resources": [{"name": "memory", "gbps": 40, "users": ["*>m0", "*<m0"]}]}
MODEL
own_cluster --nodes 1 --model "$model"
rm -f "$model"

left_to_nccl() { # TASKS REASON-PATTERN
    equal "exit status" "$status" 0
    equal "tasks" "$(tasks)" "$1"
    all_have TCCL_STATE left
    none_has TCCL_RING
    none_has TCCL_PLAN
    none_has TCCL_GBPS
    none_has LD_PRELOAD
    matches TCCL_REASON "$(values TCCL_REASON)" "$2"
    matches TCCL_BASELINE_GBPS "$(values TCCL_BASELINE_GBPS)" '[1-9]*'
    recorded "$(job_of)" 0 state left
    equal "reason in the record" "$(record "$(job_of)" 0 reason)" "$(values TCCL_REASON)"
}

srun_show -w n1 -N1 --gpus-per-node=2 --ntasks-per-node=2 --tccl=require
left_to_nccl 2 "NCCL's own ring is as fast (10.0 GB/s)"
says "tccl: nothing to do: NCCL's own ring is as fast (10.0 GB/s)"

srun_show -w n1 -N1 --gpus-per-node=2 --ntasks-per-node=1 --tccl=auto
left_to_nccl 1 "NCCL's own ring is as fast*"
says_nothing
