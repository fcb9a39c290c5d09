#!/bin/bash
# A job's prolog announces its GPUs: where nodes arrive seconds apart (PrologFlags=NoHold), steps that
# begin without the late one have the ring all the same, and it finds it solved. Steps that are not what was
# announced go the ordinary way; the late node alone is without where it is only seen then.
# cluster: own
. "$(dirname "$0")/lib.sh"

slow() { # NODE SECONDS: its Prolog
    printf '#!/bin/sh\nsleep %s\n' "$2" >"$cluster/nodes/$1/prolog"
    chmod 755 "$cluster/nodes/$1/prolog"
}

fast() {
    rm -f "$cluster"/nodes/*/prolog
}

own_cluster --nodes 3 --slurm-conf PrologFlags=Alloc,NoHold
whole="-N3 --gpus-per-node=4 --ntasks-per-node=1"

echo "--- a late node: not the first, the first, all but the first"
for late in n2 n1 "n2 n3"; do
    for node in $late; do slow "$node" 7; done
    srun_show $whole --tccl=on
    fast
    equal "exit status" "$status" 0
    applied 3
    as_solved 0 n1:0-3 n2:0-3 n3:0-3
    recorded "$(job_of)" 0 state applied
    recorded "$(job_of)" 0 job_name show
    equal "tasks with a plan" "$(carriers TCCL_PLAN)" 3
    eventually "plans removed" eval "! ls $cluster/nodes/n*/run/$(job_of).* 2>/dev/null | grep ."
done

echo "--- without any flag, by the site's policy, whose minimums the late first node has from the others"
cp "$cluster/tccl.conf" "$cluster/tccl.conf.before"
printf '[policy]\nDefault=auto\nMinNodes=2\nMinGpus=12\n' >>"$cluster/tccl.conf"
slow n1 7
srun_show $whole
applied 3
recorded "$(job_of)" 0 mode auto
srun_show -N3 --gpus-per-node=3 --ntasks-per-node=1
equal "tasks" "$(tasks)" 3
none_has TCCL_PLAN
fast
mv "$cluster/tccl.conf.before" "$cluster/tccl.conf"

echo "--- sbatch and a step in it, environment twin; srun in salloc"
cat >"$work/job" <<JOB
#!/bin/bash
srun --ntasks-per-node=1 $work/show
JOB
slow n2 7
TCCL=on batch $whole "$work/job"
applied 3 0
TCCL=on user_show salloc $whole srun "$work/show"
fast
applied 3 0

echo "--- two steps at once, each with all GPUs"
slow n3 7
cat >"$work/job" <<JOB
#!/bin/bash
srun --overlap --ntasks-per-node=1 $work/show &
srun --overlap --ntasks-per-node=1 $work/show &
wait
JOB
batch $whole --tccl=on "$work/job"
fast
applied 3 0
applied 3 1

echo "--- fewer GPUs, on all nodes: not what was announced"
slow n3 9
user_show salloc $whole --tccl=on srun --gpus-per-node=2 "$work/show"
fallback 3 '*n3: *'
recorded "$(job_of)" 0 state fallback

echo "--- fewer nodes"
user_show salloc $whole --tccl=on srun -N2 -n2 -w n2,n3 "$work/show"
fallback 2 '*n3: *'
fast

# A step of a job whose late node is n3; COMMAND runs between prolog and step.
slow_job() { # COMMAND...
    local pid
    rm -f "$work"/seen/* "$work/go" "$work/allocated"
    slow n3 9
    user salloc $whole --tccl=on bash -c "echo \$SLURM_JOB_ID >$work/allocated
        until [ -e $work/go ]; do sleep 0.1; done; exec srun $work/show" 2>"$work/err" &
    pid=$!
    eventually "allocation" test -s "$work/allocated"
    job=$(cat "$work/allocated")
    "$@"
    touch "$work/go"
    wait $pid
    fast
    collect
}

restart() {
    mini stop-tccld n3
    mini start-tccld n3
}

echo "--- restarted between prolog and step: it knows of no announcement"
slow_job restart
fallback 3 '*n3: *'

# No step of this Slurm has all of its job's GPUs on one node and fewer on another: so more were announced.
announce_others() {
    python3 - "$cluster/nodes/n3/tccld.sock" "$job" <<'ANNOUNCE'
import json, socket, struct, sys
peer = socket.socket(socket.AF_UNIX)
peer.connect(sys.argv[1])
key = {"cluster": "minicluster", "job": int(sys.argv[2]), "het_job": 0, "het_offset": 0, "step": 0xfffffffe, "restart": 0,
       "run": 0}
message = json.dumps({"v": 1, "type": "announce", "key": key, "node": 2, "nodes": ["n1", "n2", "n3"], "gres": [0, 1], "mode": "on",
                      "uid": 65534, "gid": 65534, "timeout_ms": 1000, "min_nodes": 0, "min_gpus": 0}).encode()
peer.sendall(struct.pack(">I", len(message)) + message)
if b'"ok"' not in peer.recv(1000):
    sys.exit("not heard")
ANNOUNCE
}

echo "--- other GPUs on the late node than announced there: it alone is without"
slow_job announce_others
equal "tasks" "$(tasks)" 3
equal "states" "$(values TCCL_STATE | xargs)" "applied fallback"
equal "tasks with a plan" "$(carriers TCCL_PLAN)" 2
matches "reason" "$(values TCCL_REASON)" "n3: the step has other GPUs here than the job's prolog announced"
partial() { [ "$(record "$job" 0 state)" = partial ]; }
eventually "partial" partial
recorded "$job" 0 reason 'n3: *'

echo "--- requeued while a node is late, with another first run"
slow n3 9
cat >"$work/job" <<JOB
#!/bin/bash
[ -n "\${SLURM_RESTART_COUNT:-}" ] || touch $work/ran
srun --export=NONE --ntasks-per-node=1 $work/show
JOB
job=$(user sbatch --parsable --requeue --open-mode=append --output="$work/batch" $whole --tccl=on "$work/job")
eventually "first run" test -e "$work/ran"
sleep 3 # the step of n1 and n2 has begun
rm -f "$work"/seen/*
user scontrol requeue "$job"
fast
start_now() { # the wait before a restart is only Slurm's caution
    [ "$(ls "$work/seen" | wc -l)" = 3 ] && return
    sleep 1 # or else its credential is of a second that slurmd has revoked
    [ "$(admin squeue -hj "$job" -o %r)" != BeginTime ] ||
        admin scontrol update JobId="$job" StartTime=now
    false
}
eventually "second run" start_now
eventually "end of job $job" job_ended "$job"
collect
applied 3 0

echo "--- cancelled while a node is late"
slow n3 7
job=$(user sbatch --parsable --output="$work/batch" $whole --tccl=on --wrap "srun --ntasks-per-node=1 sleep 100")
eventually "its first step" eval "ls $cluster/nodes/n1/run | grep '^$job\.0'"
user scancel "$job"
fast
eventually "end of job $job" job_ended "$job"
srun_show $whole --tccl=on
applied 3
nodes_are_up
