#!/bin/bash
# The page of tcclacct serve in a real browser: jobs and their rings, days, congested sets; hostile names; a
# daemon that goes and comes back; who is let in, and how.
# cluster: own
. "$(dirname "$0")/lib.sh"

command -v chromium >/dev/null || skip "chromium is not installed"
put=$build/testsuite/unit/put-records
[ -x "$put" ] || skip "no put-records in $build"
own_cluster --nodes 4 --model amd-4gpu --model intel-4gpu

servers=()
trap 'end_status=$?; set +e; [ ${#servers[@]} = 0 ] || kill "${servers[@]}"; (exit $end_status); end_own_cluster "$cluster"' EXIT

# Serves as a user; what it says is in $work/serve.NAME.
serve() { # NAME USER OPTION...
    local name=$1 as=$2
    shift 2
    "$root/contrib/minicluster" run --as "$as" -- tcclacct serve --node n1 "$@" >"$work/serve.$name" 2>&1 &
    servers+=($!)
    eventually "tcclacct serve $name" grep -q ^tcclacct: "$work/serve.$name"
}

# Days before today, and what no job here can bring about: a hostile reason.
past_records() {
    local day=86400 now id
    now=$(date +%s) id=$(id -u nobody)
    for ago in 1 2 3 5 6 7 8; do
        echo '{"cluster":"minicluster","job":'$((900 + ago))',"step":0,"uid":'$id',"user":"nobody","state":"applied",' \
            '"gbps":9,"baseline_gbps":6,"start":'$((now - ago * day))',"reporter":0,"nodes":"n[1-2]","gpus":8,"mode":"on"}'
    done
    echo '{"cluster":"minicluster","job":950,"step":0,"uid":'$id',"user":"nobody","state":"fallback","mode":"on","job_name":"fell",' \
        '"reason":"n2: no profile of that machine","start":'"$now"',"reporter":0,"nodes":"n[1-2]","gpus":8}'
    python3 - "$now" "$id" <<'PYTHON'
import json, sys
bad = "<img src=x onerror=\"hacked=1\">\u202e\u0007'\"]]>--><script>hacked=1</script>"
print(json.dumps({"cluster": bad, "job": 999, "step": 0, "uid": int(sys.argv[2]), "user": bad, "account": bad, "partition": bad,
                  "job_name": bad, "nodes": "n1", "mode": bad[:20], "state": "fallback", "reason": bad, "source": "<b>",
                  "start": int(sys.argv[1]), "reporter": 0, "ring": f"{bad}[0 -w> 1]"}))
PYTHON
}
past_records >"$work/past"
"$put" "$cluster/nodes/n1/state/records.db" <"$work/past"

# Real jobs: four nodes of two kinds; names that are to stay names; root's, which the user must not see.
ran() { # WHAT COMMAND...: waits for the record of what the command started, and prints the job's id
    local job
    job=$("$@" sh -c 'if [ "$SLURM_PROCID" = 0 ]; then echo "$SLURM_JOB_ID"; fi' </dev/null 2>>"$work/err")
    eventually "a record of $job" has_record "$job" 0
    echo "$job"
}
mixed=$(ran user srun -N4 --gpus-per-node=4 --tccl=on -J 'train <b>all</b>')
single=$(ran user srun -N1 -w n1 --gpus-per-node=3 --tccl=on -J plain)
roots=$(ran admin srun -N1 -w n1 --gpus-per-node=2 --tccl=on -J secret-of-root)
names=('<script>hacked=1</script>' "\"'\`><svg onload=hacked=1>" $'a\tb\e[31m\u202egpj.exe' '../../../etc/passwd' 'null'
    "$(printf '😀%.0s' {1..60})")
for name in "${names[@]}"; do
    ran user srun -N1 -w n1 --gpus-per-node=2 --tccl=on -J "$name" -A "$name" >>"$work/hostile"
done
user sbatch -J longer -N1 -w n2 --gpus-per-node=2 --tccl=on --parsable -o /dev/null \
    --wrap 'srun --tccl=on sleep 300' >"$work/longer"
eventually "a record of the job that runs" has_record "$(cat "$work/longer")" 0

serve tcp nobody --port 0
serve unix nobody --socket "$work/page.sock"
equal "mode of the socket" "$(stat -c '%a %U' "$work/page.sock")" "600 nobody"

timeout 900 python3 "$here/web.py" "$root/contrib/minicluster" "$cluster" "$work" "$mixed" "$single" "$roots" \
    "$(cat "$work/longer")" $(cat "$work/hostile")

kill "${servers[@]}"
eventually "the socket is removed" test ! -e "$work/page.sock"
servers=()
user scancel "$(cat "$work/longer")"
