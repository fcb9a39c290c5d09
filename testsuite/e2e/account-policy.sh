#!/bin/bash
# Policies by account and QOS, with Slurm's own accounting: where Slurm sets what the environment says of
# them, a job's environment can't change it; partition and user it can't change anywhere.
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
applied 1
recorded "$(job_of)" 0 policy ours
user_show env $lies srun $four --qos=debug --tccl=on "$work/show"
fallback 1 "policy 'debug' forbids rings"
printf '#!/bin/bash\n%s/show\nexport %s\nsrun %s/show\n' "$work" "$lies" "$work" >"$work/job"
TCCL=on user_show env $lies srun -p other $four "$work/show"
fallback 1 "policy 'other' forbids rings"
for lie in "$lies" A=b; do
    rm -f "$work"/seen/* "$work/batch"
    job=$(user env $lie sbatch --parsable --output="$work/batch" $four "$work/job")
    eventually "end of job $job" job_ended "$job"
    collect
    applied 1 batch
    recorded "$job" batch policy ours
    job=$(user env $lie sbatch --parsable --output="$work/batch" -p other $four --tccl=on "$work/job")
    eventually "end of job $job" job_ended "$job"
    collect
    matches "what the script says" "$(cat "$work/batch")" "*tccl: no ring: policy 'other' forbids rings (*"
    equal "rings" "$(grep -c "^$job.* TCCL_RING=" "$work/out" || true)" 0
done
