#!/bin/bash
# Policies by account and QOS, with Slurm's own accounting: no environment changes them, neither by variables
# that Slurm sets itself, nor by those of a launcher of the user's own (forge.c): slurmctld is asked. A slurmctld
# that is stopped when it is asked gives no ring by such a policy.
# cluster: own
# level: all
. "$(dirname "$0")/lib.sh"

PATH=$PATH:/usr/sbin:/sbin
for program in slurmdbd sacctmgr mariadbd; do
    command -v $program >/dev/null || skip "$program is not installed"
done
own_cluster --nodes 1 --accounting
admin sacctmgr -i add qos debug >/dev/null
admin sacctmgr -i modify user nobody set qos+=debug >/dev/null
cat >>"$cluster/tccl.conf" <<CONF
[policy debug]
Qos=debug
Forbid=yes
[policy other]
Partitions=other
Users=nobody
Forbid=yes
[policy ours]
Accounts=all
Default=on
CONF
four="-w n1 -N1 --gpus-per-node=4 --ntasks-per-node=1"
lies="SLURM_JOB_ACCOUNT=x SLURM_JOB_QOS=y SLURM_JOB_PARTITION=z SLURM_JOB_USER=root"

user_show env $lies srun $four "$work/show"
has_ring 1
recorded "$(job_of)" 0 policy ours
user_show env $lies srun $four --qos=debug --tccl=on "$work/show"
no_ring 1 "policy 'debug' forbids rings"
printf '#!/bin/bash\n%s/show\nexport %s\nsrun %s/show\n' "$work" "$lies" "$work" >"$work/job"
TCCL=on user_show env $lies srun -p other $four "$work/show"
no_ring 1 "policy 'other' forbids rings"
for lie in "$lies" A=b; do
    rm -f "$work"/seen/* "$work/batch"
    job=$(user env $lie sbatch --parsable --output="$work/batch" $four "$work/job")
    eventually "end of job $job" job_ended "$job"
    collect
    has_ring 1 batch
    recorded "$job" batch policy ours
    job=$(user env $lie sbatch --parsable --output="$work/batch" -p other $four --tccl=on "$work/job")
    eventually "end of job $job" job_ended "$job"
    collect
    matches "what the script says" "$(cat "$work/batch")" "*tccl: no ring: policy 'other' forbids rings (*"
    equal "rings" "$(grep -c "^$job.* TCCL_RING=" "$work/out" || true)" 0
done

echo "--- a launcher of the user's own"
cc -shared -fPIC -D_GNU_SOURCE -Wall -Werror -o "$work/forge.so" "$here/forge.c" -ldl
chmod 755 "$work/forge.so"
forged() { # NAME=VALUE;… SRUN-OPTION...
    local lies=$1
    shift
    user_show env FORGE="$lies" LD_PRELOAD="$work/forge.so" srun --export=ALL,LD_PRELOAD= "$@" "$work/show"
}
forged "SLURM_JOB_QOS=normal" $four --qos=debug --tccl=on
no_ring 1 "*says QOS normal, the job's is debug"
recorded "$(job_of)" 0 qos debug
forged "SLURM_JOB_ACCOUNT=none" $four --tccl=on
no_ring 1 "*says account none, the job's is all"
recorded "$(job_of)" 0 account all
forged "SLURM_JOB_NAME=else;SLURM_CLUSTER_NAME=else" $four
has_ring 1
recorded "$(job_of)" 0 policy ours
recorded "$(job_of)" 0 job_name else
recorded "$(job_of)" 0 cluster "$(slurms_name)"
equal "jobs by QOS" "$(admin tcclacct -nP -a -q debug -o qos,account | sort -u)" "debug|all"
equal "what is claimed" "$(admin tcclacct -nP -a -o claimed | sort -u | xargs)" ""
