#!/bin/bash
# A job's prolog announces its GPUs: where nodes arrive far apart (PrologFlags=NoHold), steps that
# begin without the late one have the ring all the same, and it finds it solved. Steps that are not what was
# announced go the ordinary way; the late node alone is without where it is only seen then.
# cluster: own
# level: all
. "$(dirname "$0")/lib.sh"

own_cluster --nodes 3 --slurm-conf PrologFlags=Alloc,NoHold
whole="-N3 --gpus-per-node=4 --ntasks-per-node=1"

echo "--- a late node: not the first, the first, all but the first"
for late in n2 n1 "n2 n3"; do
    hold $late
    late_show $((3 - $(wc -w <<<"$late"))) srun $whole --tccl=on "$work/show"
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
hold n1
late_show 2 srun $whole "$work/show"
applied 3
recorded "$(job_of)" 0 mode auto
hold n1
late_show 2 srun -N3 --gpus-per-node=3 --ntasks-per-node=1 "$work/show"
equal "tasks" "$(tasks)" 3
none_has TCCL_PLAN
mv "$cluster/tccl.conf.before" "$cluster/tccl.conf"

echo "--- sbatch and a step in it, environment twin; srun in salloc"
cat >"$work/job" <<JOB
#!/bin/bash
srun --ntasks-per-node=1 $work/show
JOB
late_batch() { # TASKS SBATCH-OPTION... SCRIPT: as late_show
    local number=$1
    shift
    rm -f "$work"/seen/*
    job=$(user sbatch --parsable --output="$work/batch" "$@")
    eventually "$number tasks while others are late" started "$number"
    release
    eventually "end of job $job" job_ended "$job"
    cat "$work/batch"
    collect
}
hold n2
TCCL=on late_batch 2 $whole "$work/job"
applied 3 0
hold n2
TCCL=on late_show 2 salloc $whole srun "$work/show"
applied 3 0

echo "--- two steps at once, each with all GPUs"
hold n3
cat >"$work/job" <<JOB
#!/bin/bash
srun --overlap --ntasks-per-node=1 $work/show &
srun --overlap --ntasks-per-node=1 $work/show &
wait
JOB
late_batch 4 $whole --tccl=on "$work/job"
applied 3 0
applied 3 1

echo "--- fewer GPUs, on all nodes: not what was announced"
wait_little
hold n3
late_show 2 salloc $whole --tccl=on srun --gpus-per-node=2 "$work/show"
fallback 3 '*n3: *'
recorded "$(job_of)" 0 state fallback

echo "--- fewer nodes"
hold n3
late_show 1 salloc $whole --tccl=on srun -N2 -n2 -w n2,n3 "$work/show"
fallback 2 '*n3: *'

# A step of a job whose late node is n3; COMMAND runs between the announcement and the step.
late_job() { # COMMAND...
    local pid
    rm -f "$work"/seen/* "$work/go" "$work/allocated"
    hold n3
    user salloc $whole --tccl=on bash -c "echo \$SLURM_JOB_ID >$work/allocated
        until [ -e $work/go ]; do sleep 0.1; done; exec srun $work/show" 2>"$work/err" &
    pid=$!
    eventually "allocation" test -s "$work/allocated"
    eventually "n3's Prolog" test -e "$work/held.n3"
    job=$(cat "$work/allocated")
    "$@"
    touch "$work/go"
    eventually "two tasks while n3 is late" started 2
    release
    wait $pid
    collect
}

restart() {
    mini stop-tccld n3
    mini start-tccld n3
}

echo "--- restarted between prolog and step: it knows of no announcement"
late_job restart
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
wait_long
late_job announce_others
equal "tasks" "$(tasks)" 3
equal "states" "$(values TCCL_STATE | xargs)" "applied fallback"
equal "tasks with a plan" "$(carriers TCCL_PLAN)" 2
matches "reason" "$(values TCCL_REASON)" "n3: the step has other GPUs here than the job's prolog announced"
partial() { [ "$(record "$job" 0 state)" = partial ]; }
eventually "partial" partial
recorded "$job" 0 reason 'n3: *'

echo "--- requeued while a node is late, with another first run"
hold n3
cat >"$work/job" <<JOB
#!/bin/bash
srun --export=NONE --ntasks-per-node=1 $work/show
JOB
rm -f "$work"/seen/*
job=$(user sbatch --parsable --requeue --open-mode=append --output="$work/batch" $whole --tccl=on "$work/job")
eventually "the first run's step on n1 and n2" started 2
user scontrol requeue "$job"
release
first_is_over() { [ "$(admin squeue -hj "$job" -o %T)" = PENDING ]; }
eventually "the first run's end" first_is_over
rm -f "$work"/seen/* # n3's part of it may have run
start_now() { # the wait before a restart is only Slurm's caution
    [ "$(ls "$work/seen" | grep -c "^$job\.1\.")" = 3 ] && return
    sleep 1 # or else its credential is of a second that slurmd has revoked
    [ "$(admin squeue -hj "$job" -o %r)" != BeginTime ] ||
        admin scontrol update JobId="$job" StartTime=now
    false
}
eventually "second run" start_now
eventually "end of job $job" job_ended "$job"
rm -f "$work/seen/$job".0.*
collect
applied 3 0

echo "--- cancelled while a node is late"
hold n3
job=$(user sbatch --parsable --output="$work/batch" $whole --tccl=on --wrap "srun --ntasks-per-node=1 sleep 100")
eventually "its first step" eval "ls $cluster/nodes/n1/run | grep '^$job\.0'"
user scancel "$job"
release
eventually "end of job $job" job_ended "$job"
srun_show $whole --tccl=on
applied 3
nodes_are_up
