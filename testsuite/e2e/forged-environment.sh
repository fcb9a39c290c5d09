#!/bin/bash
# What a user writes into a step's environment is no fact: not of which cluster, user or heterogeneous
# job it is. By srun's --export, and by a launcher of the user's own (forge.c).
# cluster: mixed
# level: quick
. "$(dirname "$0")/lib.sh"

cc -shared -fPIC -D_GNU_SOURCE -Wall -Werror -o "$work/forge.so" "$here/forge.c" -ldl
chmod 755 "$work/forge.so"
one="-w n1 -N1 --gpus-per-node=4 --ntasks-per-node=1"
two="-w n1,n2 -N2 --gpus-per-node=4 --ntasks-per-node=1"

forged() { # NAME=VALUE;… SRUN-OPTION...: the step of such a launcher
    local lies=$1
    shift
    user_show env FORGE="$lies" LD_PRELOAD="$work/forge.so" srun --export=ALL,LD_PRELOAD= "$@" "$work/show"
    matches "what the launcher says" "$(cat "$work/err")" "*forged*"
}

facts() { # JOB: what its record says
    recorded "$1" 0 state "*"
    local name
    for name in cluster job uid het_job partition; do
        echo "$name=$(record "$1" 0 $name)"
    done | xargs
}

srun_show $one --tccl=on
job=$(job_of)
true_facts=$(facts "$job" | sed "s/job=$job //")
cluster_name=$(record "$job" 0 cluster)
equal "the cluster" "$cluster_name" minicluster
victim=$job

echo "--- another cluster, user, heterogeneous job"
# $victim is not right below the next job's id, so it can't be its leader.
srun_show $one --tccl=on
lies="SLURM_CLUSTER_NAME=other;SLURM_JOB_USER=root;SLURM_JOB_UID=0;SLURM_UID=0;SLURM_HET_SIZE=2;SLURM_JOB_ID_HET_GROUP_0=$victim"
lies+=";SLURM_JOB_ID_PACK_GROUP_0=$victim;SLURM_HET_JOB_ID=$victim;SLURM_HET_JOB_OFFSET=1;SLURM_JOB_ID=$victim"
next=$(($(job_of) + 1))
lies+=";SLURM_JOB_ID_HET_GROUP_1=$next;SLURM_JOB_ID_PACK_GROUP_1=$next"
forged "$lies" $one --tccl=on
equal "what is on record" "$(facts "$next" | sed "s/job=$next //")" "$true_facts"
equal "user" "$(admin tcclacct -nP -o user -j "$next")" nobody
equal "records under the victim" "$(admin tcclacct -nP -o jobid -j "$victim")" "$victim.0"
equal "records of the other cluster" "$(admin tcclacct -nP -o cluster -S now-1hour | grep -c '^other$' || true)" 0

echo "--- by --export"
user_show srun --export="ALL,$(tr ';' ',' <<<"${lies//$next/$((next + 1))}")" $one --tccl=on "$work/show"
equal "what is on record" "$(facts "$((next + 1))" | sed "s/job=$((next + 1)) //")" "$true_facts"

echo "--- other nodes and GPUs"
# slurmstepd sets these itself.
forged "SLURM_STEP_NODELIST=n[1,4];SLURM_STEP_GPUS=0;SLURM_STEP_NUM_NODES=3" $two --tccl=on
applied 2
recorded "$(job_of)" 0 nodes "n\[1-2\]"
recorded "$(job_of)" 0 gpus 8
