#!/bin/bash
# Random jobs in bad weather: while tccld of all nodes are killed and started again, tccl.conf vanishes, is cut
# short, or becomes something else, and Prologs take their time, jobs of all shapes (parts of nodes and GPUs,
# steps one over the other, scripts, arrays, requeued, cancelled) run as if nothing of this were there. All tasks
# of a step are told the same as far as messages allow; nothing is left behind. TCCL_SEED repeats the jobs.
# cluster: own
# level: all
. "$(dirname "$0")/lib.sh"

seed=${TCCL_SEED:-$RANDOM}
rounds=${TCCL_STORM_ROUNDS:-10} # of each of the workers
workers=4
echo "TCCL_SEED=$seed"
ulimit -c unlimited
own_cluster --nodes 4 --model amd-4gpu --model intel-4gpu --tccl-conf Timeout=1500ms --slurm-conf ClusterName=storm$$

chance() { # PERCENT
    [ $((RANDOM % 100)) -lt "$1" ]
}

one_of() { # WORD...
    local words=("$@")
    echo "${words[RANDOM % $#]}"
}

# ---- what tasks and steps write down ---------------------------------------------------------------

# told/JOB.STEP+RUN: a line "STATE NODE TASKS REASON PLAN" of each task, TASKS: how many there should be. ended/NAME: a
# line "STATUS JOB RUN SRUN-OPTIONS" of a step.
mkdir -p "$work/told" "$work/ended" "$work/messages"
chmod 1777 "$work/told" "$work/ended" "$work/messages"
cat >"$work/task" <<TASK
#!/bin/sh
state=\${TCCL_STATE:-none}
[ "\$state" != planned ] || [ -r "\$TCCL_PLAN" ] || state=unreadable
echo "\$state \$SLURMD_NODENAME \$SLURM_STEP_NUM_TASKS \$TCCL_REASON \$TCCL_PLAN" \
    >>"$work/told/\$SLURM_JOB_ID.\$SLURM_STEP_ID+\${SLURM_RESTART_COUNT:-0}"
sleep \${1:-0}
TASK
cat >"$work/step" <<STEP
#!/bin/bash
# SECONDS SRUN-OPTION...: one step
seconds=\$1 status=0 name=\${SLURM_JOB_ID:-}.\$\$.\$RANDOM
shift
srun "\$@" "$work/task" "\$seconds" 2>"$work/messages/\$name" || status=\$?
echo "\$status \${SLURM_JOB_ID:-0} \${SLURM_RESTART_COUNT:-0} \$*" >"$work/ended/\$name"
exit \$status
STEP
chmod 755 "$work/task" "$work/step"

# ---- jobs ------------------------------------------------------------------------------------------

mode_option() {
    one_of "" "" --tccl --tccl=on --tccl=auto --tccl=off
}

alone() {
    local nodes=$((1 + RANDOM % 4)) per_node=$((1 + RANDOM % 3)) gpus=$((1 + RANDOM % 4)) options
    options="-N$nodes --ntasks-per-node=$per_node $(mode_option)"
    case $((RANDOM % 4)) in
    0) per_node=$gpus options="-N$nodes --ntasks-per-node=$gpus --gpus-per-task=1 $(mode_option)" ;;
    1) options+=" --gpus-per-node=4 --exclusive" ;;
    *) options+=" --gpus-per-node=$gpus" ;;
    esac
    user "$work/step" 0 $options || true
}

write_script() { # FILE NODES
    local i options
    {
        echo '#!/bin/bash'
        for ((i = 0; i < 1 + RANDOM % 4; i++)); do
            options="-N$2 --ntasks-per-node=1 --overlap $(mode_option)"
            options+=" $(one_of "" "" --gpus-per-node=1 --gpus-per-node=2 --exact)"
            echo "$work/step 0.$((RANDOM % 5)) $options $(one_of '&' '')"
        done
        echo wait
        echo "[ ! -e $1.again ] || [ \${SLURM_RESTART_COUNT:-0} -gt 0 ] || sleep 100"
    } >"$1"
}

script_job() {
    local nodes=$((1 + RANDOM % 4)) name=$work/job.$BASHPID.$RANDOM array="" job
    write_script "$name" "$nodes"
    ! chance 25 || array=--array=0-1
    [ -n "$array" ] || ! chance 30 || touch "$name.again"
    job=$(user sbatch --parsable --requeue $array --output=/dev/null -N"$nodes" --gpus-per-node="$(one_of 2 4)" \
        $(mode_option) "$name")
    if [ -e "$name.again" ]; then
        eventually "job $job runs" eval "[ \"\$(admin squeue -hj $job -o %T)\" = RUNNING ]"
        sleep 0.$((RANDOM % 10))
        admin scontrol requeue "$job" || true
        echo "$job" >>"$work/requeued"
    fi
    eventually "end of job $job" job_ended "$job"
}

cancelled() {
    local nodes=$((1 + RANDOM % 4)) job
    job=$(user sbatch --parsable --output=/dev/null -N"$nodes" --gpus-per-node=4 $(mode_option) \
        --wrap "srun --ntasks-per-node=1 sleep 100")
    sleep 0.$((RANDOM % 10))
    admin scancel "$job"
    eventually "end of job $job" job_ended "$job"
}

work_on() { # WORKER
    local i
    RANDOM=$((seed + $1))
    for ((i = 0; i < rounds; i++)); do
        "$(one_of alone alone alone script_job script_job cancelled)"
    done
}

# ---- the weather -----------------------------------------------------------------------------------

good=$cluster/tccl.conf.good
cat >>"$cluster/tccl.conf" <<CONF
[policy]
Default=auto
Environment=NCCL_STORM=1
[policy small]
Nodes=1-2
Environment=NCCL_SMALL=1
CONF
cp "$cluster/tccl.conf" "$good"

spoil_conf() {
    local conf=$cluster/tccl.conf
    case $((RANDOM % 6)) in
    0) rm -f "$conf" ;;
    1) head -c $((RANDOM % $(stat -c %s "$good"))) "$good" >"$conf" ;;
    2) rm -f "$conf" && mkfifo "$conf" ;;
    3) rm -f "$conf" && mkdir "$conf" ;;
    4) truncate -s 1G "$conf" ;;
    5) rm -f "$conf" && ln -s tccl.conf "$conf" ;;
    esac
    sleep 0.$((RANDOM % 5))
    rm -rf "$conf" # a folder too
    cp "$good" "$conf.new"
    mv "$conf.new" "$conf"
}

kill_any_tccld() {
    local node=n$((1 + RANDOM % 4))
    kill_tccld "$node"
    sleep 0.$((RANDOM % 8))
    mini start-tccld "$node"
}

# What is left of a job's run before. For srun's "Waiting up to 4 seconds" it is there, and then it cancels a step of the next run.
old_run() { # JOB
    local files=$(grep -lzx "SLURM_JOB_ID=$1" /proc/[0-9]*/environ 2>/dev/null)
    [ -n "$files" ] && grep -qzx "SLURM_CLUSTER_NAME=storm$$" $files 2>/dev/null
}

# The wait before a restart is Slurm's caution, but for that and the first second: by that slurmd tells credentials of two runs apart.
start_now() {
    local job jobs=$(admin squeue -ht PENDING -o '%A %r' | awk '$2 == "BeginTime" {print $1}')
    [ -z "$jobs" ] || sleep 1.1
    for job in $jobs; do
        old_run "$job" || admin scontrol update JobId="$job" StartTime=now || true
    done
}

slow_prolog() {
    local hook=$cluster/nodes/n$((1 + RANDOM % 4))/prolog
    printf '#!/bin/sh\nsleep %s\n' "1.$((RANDOM % 9))" >"$hook.new"
    chmod 755 "$hook.new"
    mv "$hook.new" "$hook"
    sleep 1
    rm -f "$hook"
}

weather() {
    RANDOM=$((seed + 1000))
    while [ -d "$work" ] && [ ! -e "$work/over" ]; do
        case $((RANDOM % 4)) in
        0) spoil_conf ;;
        1 | 2) kill_any_tccld ;;
        3) slow_prolog ;;
        esac
        start_now
        sleep 0.$((RANDOM % 10))
    done
}

weather &
weather=$!
pids=()
for ((worker = 1; worker <= workers; worker++)); do
    work_on "$worker" &
    pids+=($!)
done
for pid in "${pids[@]}"; do wait "$pid"; done
eventually "no jobs left" no_jobs
touch "$work/over"
wait "$weather"

# ---- what it has done ------------------------------------------------------------------------------

eventually "records delivered" eval '[ "$(outboxes)" = 0 ]'
records
admin squeue -h
nodes_are_up
python3 "$here/storm.py" "$work" "$work/records.json"
! grep -Ei 'error: *(tccl|spank)|spank.*(fail|died)|segmentation|core dumped|drain' "$cluster"/log/slurmd@*.log |
    grep -v '/tccl\.conf' || fail "errors in slurmd's logs"
! find "$cluster" -name 'core*' -type f -size +100k | grep . || fail "a core file"
# What is there once for a node (lost records, lines that were printed, slurmd's list) isn't a step's.
plans() { find "$cluster"/nodes/n*/run -mindepth 1 -regextype egrep ! -regex '.*/run/(records|printed|hung|slurm-gpus)'; }
echo "left by tccld that were killed: $(plans | wc -l) files and folders"
for node in n1 n2 n3 n4; do
    mini stop-tccld "$node"
    mini start-tccld "$node"
done
no_plans() { ! plans | grep .; }
(eventually "plans swept" no_plans) || { plans; fail "plans that are not swept"; } # and slurmd -G has ended
! cat "$work"/told/* | sed -nE 's|.* /.*(-[0-9a-f]{16})/plan$|/dev/shm/tccl-65534\1.*|p' | sort -u |
    while read -r pattern; do compgen -G "$pattern" || true; done | grep . || fail "files in /dev/shm"
wait_long
user srun -N4 --gpus-per-node=4 --tccl=on "$work/task" 2>"$work/err"
says 'tccl: *ring* of 4 nodes, 16 GPUs: *'
