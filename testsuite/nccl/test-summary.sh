#!/bin/bash
# What rings bring, as an administrator sees it: jobs under srun on a minicluster, half of them trials, with a stock NCCL whose copies take their
# time. tcclacct summary does not say what it does not know, and then what the records say, with the interval of confidence worked out anew.
# level: all
. "$(dirname "${BASH_SOURCE[0]}")/truth.sh"

readonly slower=100 train="--check --times 2 --collective all-reduce:16777216:f32 --collective all-reduce:16777216:f32"
begin_cluster
make_model "$home/true.json"
truth "$home/true.json"
printf '[policy]\nDefault=on\nTrial=50%%\n' >>"$TCCL_MINICLUSTER/tccl.conf"

summarize() {
    as_user tcclacct summary --json -S now-1day >"$work/summary.json"
    as_user tcclacct --json -S now-1day >"$work/records.json"
    python3 - "$work/summary.json" "$work/records.json" <<'PYTHON' || fail "$what: the summary is not that of the records"
import json, math, statistics, sys
achieved = json.load(open(sys.argv[1]))["achieved"]
records = [r for r in json.load(open(sys.argv[2]))["records"] if r["achieved_gbps"] > 0]
rings = [r for r in records if r["built"] == "yes" and r["achieved_with"] == "rings"]
own = [r for r in records if r["reason_class"] == "trial" and r["achieved_with"] == "own"]
assert len(rings) + len(own) == len(records), records
assert all(r["node_class"] and r["n_nodes"] == 1 and r["gpus"] == 4 for r in records), records
# Of each alone a machine that stalls may say anything: a collective that its rank began last seems short.
for arm in (rings, own):
    assert len(arm) < 5 or 0.3 < statistics.median(r["achieved_share"] for r in arm) < 1.1, arm
assert (achieved["rings"], achieved["own"], achieved["trials"]) == (len(rings), len(own), len(own)), achieved
group, = achieved["groups"]
assert (group["rings"]["jobs"], group["own"]["jobs"]) == (len(rings), len(own)), group
print({name: group[name] for name in ("gain", "low", "high", "verdict", "needs")}, len(rings), len(own))
if len(rings) < 5 or len(own) < 5:
    needs = {"rings": max(0, 5 - len(rings)), "own": max(0, 5 - len(own))}
    sys.exit(group["verdict"] != "unknown" or group["needs"] != needs)
a, b = ([math.log(r["achieved_gbps"]) for r in arm] for arm in (rings, own))
gain = statistics.mean(a) - statistics.mean(b)
ea, eb = statistics.variance(a) / len(a), statistics.variance(b) / len(b)
freedom = int((ea + eb) ** 2 / (ea ** 2 / (len(a) - 1) + eb ** 2 / (len(b) - 1)))
table = {4: 2.7764, 5: 2.5706, 6: 2.4469, 7: 2.3646, 8: 2.3060, 9: 2.2622, 10: 2.2281, 11: 2.2010, 12: 2.1788, 13: 2.1604, 14: 2.1448,
         15: 2.1314, 16: 2.1199, 17: 2.1098, 18: 2.1009, 19: 2.0930, 20: 2.0860}  # of Student's t, 0.975
half = table[min(freedom, 20)] * math.sqrt(ea + eb)
assert abs(group["gain"] / math.exp(gain) - 1) < 1e-4, gain
assert freedom > 20 or abs(group["low"] / math.exp(gain - half) - 1) < 1e-3, (half, freedom)
assert freedom > 20 or abs(group["high"] / math.exp(gain + half) - 1) < 1e-3, (half, freedom)
assert group["low"] <= 1 or group["verdict"] == "faster", group
PYTHON
}

step "jobs, half of them with NCCL's own choice"
for try in {1..40}; do
    run_step
    [ "$try" != 3 ] || summarize
    rings=$(as_user tcclacct -n -S now-1day -o achievedwith | grep -c rings || true)
    [ "$rings" -lt 5 ] || [ $((try - rings)) -lt 5 ] || break
done
summarize
as_user tcclacct summary -S now-1day | sed -n 1,14p
