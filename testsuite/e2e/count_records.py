"""count_records.py RECORDS SUMMARY: is the summary (tcclacct summary --json) what the records
(tcclacct --json) say, of the same time?"""
import collections
import datetime
import json
import statistics
import sys

with open(sys.argv[1]) as file:
    records = json.load(file)["records"]
with open(sys.argv[2]) as file:
    summary = json.load(file)


def near(a, b):  # as far as six digits tell
    return abs(a - b) < 1e-5 * max(1, abs(a))


assert summary["steps"] == len(records) > 0
assert summary["states"] == collections.Counter(r["state"] for r in records)
assert summary["built"] == collections.Counter(r["built"] for r in records if r["built"])
assert sum(r["steps"] for r in summary["reasons"]) == sum(r["reason"] != "" for r in records)
for reason in summary["reasons"]:
    assert any(r["reason"] == reason["example"] and r["start"] == reason["last"] for r in records), reason

rings = [r for r in records if r["state"] == "planned"]
ratios = [r["ratio"] for r in rings if r["ratio"] > 0]
for part in summary["gains"]:
    top = part["to"] if part["to"] is not None else float("inf")
    edge = [near(ratio, part["from"]) or near(ratio, top) for ratio in ratios]  # 2.4999999999999996 is printed as 2.5
    inside = sum(part["from"] < ratio < top for ratio, on_edge in zip(ratios, edge) if not on_edge)
    assert inside <= part["steps"] <= inside + sum(edge), part
assert sum(part["steps"] for part in summary["gains"]) == len(ratios)
if ratios:
    assert near(summary["gain_mean"], statistics.mean(ratios))
    assert min(ratios) <= summary["gain_median"] <= max(ratios)

days = collections.defaultdict(list)
for record in records:
    days[datetime.date.fromtimestamp(record["start"])].append(record)
assert len(days) == len(summary["days"])
for day in summary["days"]:
    there = days[datetime.date.fromtimestamp(day["start"])]
    assert day["steps"] == len(there), day
    assert day["planned"] == sum(r["state"] == "planned" for r in there), day
    assert day["failed"] == sum(r["state"] == "failed" for r in there), day

assert summary["solve_us"]["max"] == max((r["solve_us"] for r in rings if r["solve_us"]), default=None)
for node in summary["nodes"]:
    assert node["share"] is None or 0 < node["share"] <= 1 + 1e-9, node
print(f"{len(records)} records, {len(rings)} rings")
