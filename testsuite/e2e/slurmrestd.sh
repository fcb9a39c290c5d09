#!/bin/bash
# A job that comes through slurmrestd, which passes no SPANK options: with TCCL=on in its environment,
# and by a policy alone, its script and the steps in it have their rings.
# cluster: own
# level: all
. "$(dirname "$0")/lib.sh"

PATH=$PATH:/usr/sbin:/sbin
command -v slurmrestd >/dev/null || skip "slurmrestd is not installed"
slurm=$(slurmd -V) # "slurm-wlm 22.05.8"
case $slurm in
*" 22.05."*) version=v0.0.38 plugins=openapi/$version ;;
*" 24."*) version=v0.0.40 plugins="openapi/slurmctld -d data_parser/$version" ;;
*) skip "$slurm: this test speaks to slurmrestd of Slurm 22.05 and 24" ;;
esac
own_cluster --nodes 2

cat >"$work/submit.py" <<'SUBMIT'
import http.client, json, socket, sys
path, version, environment, script = sys.argv[1:]
names = dict(pair.split("=", 1) for pair in environment.split())
names["PATH"] = "/usr/bin:/bin"
job = {"name": "rest", "partition": "all", "tasks": 2, "current_working_directory": "/tmp",
       "standard_output": "/dev/null", "standard_error": "/dev/null"}
if version == "v0.0.38":
    job |= {"nodes": 2, "gres": "gpu:4", "environment": names}
else:
    job |= {"nodes": "2", "tres_per_node": "gres/gpu:4", "environment": ["=".join(pair) for pair in names.items()]}
connection = http.client.HTTPConnection("localhost")
connection.sock = socket.socket(socket.AF_UNIX)
connection.sock.settimeout(120)
connection.sock.connect(path)
connection.request("POST", f"/slurm/{version}/job/submit", json.dumps({"job": job, "script": open(script).read()}),
                   {"Content-Type": "application/json"})
answer = connection.getresponse().read().decode()
try:
    print(json.loads(answer)["job_id"])
except (ValueError, KeyError):
    sys.exit("submit: " + answer)
SUBMIT
cat >"$work/job" <<JOB
#!/bin/bash
$work/show
srun --ntasks-per-node=1 $work/show
srun --ntasks-per-node=1 --tccl=off $work/show
JOB
chmod 644 "$work"/*.py "$work/job"
socket=$work/rest.sock
user sh -c "echo \$\$ >$work/pid; exec slurmrestd -s $plugins -a rest_auth/local unix:$socket" \
    >"$work/log" 2>&1 &
trap 'status=$?; kill "$(cat "$work/pid")" || true; tail -n 5 "$work/log"; end_own_cluster "$cluster" $status' EXIT
eventually "slurmrestd's socket" test -S "$socket"

rest() { # NAME=VALUE...: a job with these variables
    rm -f "$work"/seen/*
    job=$(user env PATH=/usr/bin:/bin python3 "$work/submit.py" "$socket" $version "$*" "$work/job")
    eventually "end of job $job" job_ended "$job"
    collect
}

rest SITE=1
equal "tasks of the step" "$(tasks 0)" 2
none_has TCCL_STATE
rest TCCL=on
has_ring 1 batch
has_ring 2 0
none_has TCCL_STATE 1
recorded "$job" 0 mode on
printf '[policy rest]\nJobNames=rest\nUsers=nobody\nDefault=auto\n' >>"$cluster/tccl.conf"
rest SITE=1
has_ring 1 batch
has_ring 2 0
none_has TCCL_STATE 1
for step in batch 0; do
    recorded "$job" $step policy rest
    recorded "$job" $step mode auto
done
