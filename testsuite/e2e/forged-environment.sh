#!/bin/bash
# What a user writes into a step's environment is no fact: not of which cluster, user, partition, array or heterogeneous
# job it is, and no policy is dodged by it; slurmctld says what is true, and where it doesn't, there is no ring where a
# policy depends on it, and the record says what is claimed. By srun's --export, and by a launcher of the user's own (forge.c).
# cluster: mixed
# level: quick
. "$(dirname "$0")/lib.sh"

cc -shared -fPIC -D_GNU_SOURCE -Wall -Werror -o "$work/forge.so" "$here/forge.c" -ldl
chmod 755 "$work/forge.so"
cp "$cluster/tccl.conf" "$work/tccl.conf"
at_end+=('cp "$work/tccl.conf" "$cluster/tccl.conf"; reload_all')
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
    for name in cluster job uid het_job partition array_job_id claimed; do
        echo "$name=$(record "$1" 0 $name)"
    done | xargs
}

srun_show $one --tccl=on
job=$(job_of)
true_facts=$(facts "$job" | sed "s/job=$job //")
cluster_name=$(record "$job" 0 cluster)
equal "the cluster" "$cluster_name" "$(slurms_name)"
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

echo "--- an array, another heterogeneous job"
forged "SLURM_ARRAY_JOB_ID=$victim;SLURM_ARRAY_TASK_ID=3;SLURM_ARRAY_TASK_COUNT=5" $one --tccl=on
equal "what is on record" "$(facts "$(job_of)" | sed "s/job=$(job_of) //")" "$true_facts"
srun_show $one --tccl=on
# Right below the next job's id, of the same user: only slurmctld knows that it isn't its leader.
below=$(job_of)
forged "SLURM_HET_SIZE=2;SLURM_JOB_ID_HET_GROUP_0=$below;SLURM_JOB_ID_HET_GROUP_1=$((below + 1))" $one --tccl=on
equal "the job" "$(job_of)" $((below + 1))
equal "what is on record" "$(facts "$(job_of)" | sed "s/job=$(job_of) //")" "$true_facts"

echo "--- another partition, which policies don't forbid"
printf '[policy no]\nPartitions=all\nForbid=yes\n[policy yes]\nPartitions=free\nDefault=on\n' >>"$cluster/tccl.conf"
srun_show $one --tccl=on
no_ring 1 "policy 'no' forbids rings"
for options in "$one" "$one --tccl=on" "$one --tccl=require" "$two --tccl=on"; do
    forged "SLURM_JOB_PARTITION=free" $options
    equal "rings" "$(carriers TCCL_RING)" 0
    case $options in
    *require) [ $status != 0 ] || fail "a required ring is not there, and the step goes on" ;;
    *)
        all_have TCCL_STATE failed
        matches "TCCL_REASON" "$(values TCCL_REASON | head -n 1)" "*says partition free, the job's is all"
        recorded "$(job_of)" 0 partition all
        equal "what is claimed" "$(record "$(job_of)" 0 claimed)" "" ;;
    esac
done
forged "SLURM_JOB_PARTITION=" $one --tccl=on
equal "rings" "$(carriers TCCL_RING)" 0
matches "TCCL_REASON" "$(values TCCL_REASON)" "*says partition (none), the job's is all"

echo "--- slurmctld hangs, or can't be asked"
# It is stopped when tccld asks, since no step starts without it. tccld may stop nothing of root's.
controller=$(cat "$cluster/pid/slurmctld")
at_end=("kill -CONT $controller" "${at_end[@]}")
cat >"$work/squeue" <<SH
#!/bin/sh
if [ -e "$work/stop" ]; then
    touch "$work/asks"
    until [ -e "$work/stopped" ]; do sleep 0.1; done
fi
exec squeue "\$@"
SH
chmod 755 "$work/squeue"
sed -i "s|^\[policy no\]|[policy honest]\nPartitions=all,some\nDefault=on\n&|; s|^\[tccl\]|&\nSqueue=$work/squeue|" "$cluster/tccl.conf"
reload_all
srun_show $one
has_ring 1
touch "$work/stop"
# No forgery: the policy depends on what nobody confirms.
srun_show $one &
step=$!
eventually "tccld asks" test -e "$work/asks"
kill -STOP $controller
eventually "slurmctld is stopped" grep -q "^State:.*T (stopped)" /proc/$controller/status
touch "$work/stopped"
# tccld gives squeue up, and the tasks start, while slurmctld is still stopped.
started() { cat "$work"/seen/* | grep started >/dev/null; }
eventually "the task has started" started
grep -q "^State:.*T (stopped)" /proc/$controller/status || fail "slurmctld is not stopped any more"
rm "$work/stop"
kill -CONT $controller
wait $step
collect
no_ring 1 "*a policy depends on the job's partition, account or QOS, and slurmctld *"
recorded "$(job_of)" 0 claimed "partition*"
recorded "$(job_of)" 0 partition all
sed -i "s|^Squeue=.*|Squeue=$work/no-such|" "$cluster/tccl.conf"
reload_all
srun_show $one
no_ring 1 "*slurmctld does not say them"
sed "s|^\[tccl\]|&\nSqueue=$work/no-such|" "$work/tccl.conf" >"$cluster/tccl.conf"
reload_all
forged "SLURM_JOB_PARTITION=free" $one --tccl=on
has_ring 1
recorded "$(job_of)" 0 partition free
recorded "$(job_of)" 0 claimed "partition*"
equal "tcclacct" "$(admin tcclacct -nP -o claimed -j "$(job_of)")" "$(record "$(job_of)" 0 claimed)"
cp "$work/tccl.conf" "$cluster/tccl.conf"
reload_all

echo "--- other nodes and GPUs"
# slurmstepd sets these itself.
forged "SLURM_STEP_NODELIST=n[1,4];SLURM_STEP_GPUS=0;SLURM_STEP_NUM_NODES=3" $two --tccl=on
has_ring 2
recorded "$(job_of)" 0 nodes "n\[1-2\]"
recorded "$(job_of)" 0 gpus 8
