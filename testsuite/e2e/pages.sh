#!/bin/bash
# tcclacct summary --html and ring --html in a real browser: real jobs, a year of days, hostile names; light, dark, on a
# phone, on paper, without a mouse; nothing runs and nothing is loaded. The same of tccl-profile report --html.
# cluster: own
# level: all
. "$(dirname "$0")/lib.sh"

command -v chromium >/dev/null || skip "chromium is not installed"
put=$build/testsuite/unit/put-records
[ -x "$put" ] || skip "no put-records in $build"
own_cluster --nodes 4 --model amd-4gpu --model intel-4gpu

# Days before today, slow nodes, and what no job here can bring about: hostile reasons and names.
past_records() {
    python3 - "$(date +%s)" "$(id -u nobody)" <<'PYTHON'
import json, sys
now, uid = int(sys.argv[1]), int(sys.argv[2])
bad = "<img src=x onerror=\"hacked=1\">\u202e\u0007'\"]]>--><script>hacked=1</script></svg></style>https://evil.example/"
def put(job, **more):
    print(json.dumps({"cluster": "minicluster", "job": job, "step": 0, "uid": uid, "user": "nobody", "reporter": 0,
                      "nodes": "n[1-2]", "n_nodes": 2, "gpus": 8, "mode": "on", **more}))
for ago in [*range(1, 26), 90, 300]:
    for i in range(1 + ago * 7 % 5):
        job, start = 10000 + ago * 10 + i, now - ago * 86400 - i * 60
        if ago % 9 == 4:
            put(job, state="failed", start=start, reason="no profile of this machine", reason_class="no profile",
                reason_node=f"n{ago % 4 + 1}")
        elif (ago + i) % 4 == 3:
            put(job, state="off", start=start)
        else:
            gbps = 5 * (1 + (ago * 3 + i * 5) % 11 / 8) * (0.7 if i == 1 else 1)
            put(job, state="planned", start=start, gbps=gbps, baseline_gbps=5, solve_us=1200 + 31 * ago, nodes="n[3-4]" if i == 1 else "n[1-2]")
put(999, state="failed", start=now, cluster=bad, user=bad, account=bad, partition=bad, job_name=bad, reason=bad)
put(998, state="planned", start=now, job_name=bad, account="a" * 255, policy="مرحبا", gbps=9.5, baseline_gbps=1e9,
    source="<b>", ring="<b>\"'&n1[mlx5_0 -g> 0 -w> 1 -g> mlx5_0] " + "x" * 120 + "[mlx5_0 -g> 0 -r> 1 -m12> 2 -g> mlx5_0]",
    built=bad[:20], built_reason=bad, nodes="n[1-2]")
wide = "mlx5_0 -g> " + " -w> ".join(map(str, range(8))) + " -m0> mlx5_1"
ring = " -w> ".join(map(str, [*range(8), 0]))  # beside it: two with several, two on other nodes
beside = f"24.60/24.60 ring: {ring} | {ring} | {ring}; 5.20/10.40 nccl: {wide} | {wide}; @1 7.59/19.00 ring: {wide}; @63 9.10/22.78 nccl: {wide}"
put(997, state="planned", start=now, job_name="wide", gpus=512, n_nodes=64, gbps=40, baseline_gbps=22, bound_gbps=42, solve_us=9000,
    nodes="w[1-64]", source="cuda", neighbours=5, neighbours_by="bounds", alone_gbps=41, beside=beside, ring=" ".join(f"w{i}[{wide}]" for i in range(1, 65)))
PYTHON
}
past_records >"$work/past"
eventually "a store, which is to be tccld's" test -s "$cluster/nodes/n1/state/records.db"
"$put" "$cluster/nodes/n1/state/records.db" <"$work/past"

ran() { # COMMAND...: waits for the record of what the command started, and prints the job's id
    local job
    job=$("$@" sh -c 'if [ "$SLURM_PROCID" = 0 ]; then echo "$SLURM_JOB_ID"; fi' </dev/null 2>>"$work/err")
    eventually "a record of $job" has_record "$job" 0
    echo "$job"
}
mixed=$(ran user srun -N4 --gpus-per-node=4 --tccl=on -J 'train <b>all</b>')
single=$(ran user srun -N1 -w n1 --gpus-per-node=3 --tccl=on -J $'a\tb\e[31m\u202egpj.exe')
roots=$(ran admin srun -N1 -w n1 --gpus-per-node=2 --tccl=on -J secret-of-root)

mkdir -m 777 "$work/pages"
page() { # NAME COMMAND...
    local name=$1
    shift
    user tcclacct "$@" --html "$work/pages/$name.html" 2>"$work/err" || fail "tcclacct $*: $(cat "$work/err")"
}
page summary summary
page year summary -S now-365days
page none summary -S now-1hour -u root
page mixed ring "$mixed"
page single ring "$single.0"
page hostile ring 998
page wide ring 997
grep -q '1 of the steps beside it is not drawn' "$work/pages/wide.html" || fail "the page does not say that somebody is not drawn"
[ "$(grep -c 'beside it on w1: at least 24.60 of 24.60 GB/s, ring' "$work/pages/wide.html")" = 3 ] || fail "three rings of a step beside it are not drawn"
kind=$(readlink -f "$cluster/nodes/n1/kind")
admin tccl-profile report --html "$work/pages/report.html" "$kind"/cache/* >"$work/out"
equal "mode of a page" "$(stat -c '%a %U' "$work/pages/mixed.html")" "644 nobody"
equal "files" "$(ls -A "$work/pages" | wc -l)" 8
without_asked() { # but for the command and the time
    sed '/^<p><code>tcclacct /d; /^<p>Created /d' "$@"
}
user tcclacct ring "$mixed" --html - 2>>"$work/err" | without_asked >"$work/out"
without_asked "$work/pages/mixed.html" | cmp - "$work/out" || fail "--html - is another page"
! grep -q "secret-of-root" "$work"/pages/*.html || fail "a page shows a job that is not the user's"
if user tcclacct ring "$roots" --html "$work/pages/roots.html" 2>"$work/err"; then
    fail "the ring of root's job is drawn for nobody"
fi
[ ! -e "$work/pages/roots.html" ] || fail "a page of nothing is written"

user tcclacct summary --json >"$work/summary.json"
user tcclacct ring "$mixed" --json >"$work/ring.json"
python3 "$here/pages.py" "$work"
