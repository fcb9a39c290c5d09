"""storm.py FOLDER RECORDS: judges what storm.sh's jobs have left in FOLDER: told/, ended/, messages/ and requeued."""
import json
import os
import sys
from collections import Counter

folder, records = sys.argv[1:]
with open(records) as file:
    records = json.load(file)["records"]
records = {(r["job"], r["step"], r["restart"]): r for r in records}
bad = []


def read(name):
    try:
        with open(os.path.join(folder, name)) as file:
            return [line.split() for line in file]
    except FileNotFoundError:
        return []


requeued = {line[0] for line in read("requeued")}
ended = {name: read(f"ended/{name}")[0] for name in os.listdir(f"{folder}/ended")}
for name, (status, job, run, *options) in ended.items():
    cut_short = job in requeued and run == "0"
    if status != "0" and not cut_short:
        bad.append(f"a step of job {job} ended with {status}: srun {' '.join(options)}: {read(f'messages/{name}')}")

told = Counter()
for name in os.listdir(f"{folder}/told"):
    lines = read(f"told/{name}")
    job, rest = name.split(".")
    step, run = rest.split("+")
    states = Counter(line[0] for line in lines)
    told += states
    if len(lines) != int(lines[0][2]) and not (job in requeued and run == "0"):
        bad.append(f"step {name}: {len(lines)} of {lines[0][2]} tasks")
    if states["unreadable"]:
        bad.append(f"step {name}: plans that can't be read: {lines}")
    if 0 < states["planned"] < len(lines):
        record = records.get((int(job), int(step), int(run)))
        why = {" ".join(line[:2] + line[3:]) for line in lines if line[0] != "planned"}
        print(f"step {name}: {dict(states)}; its record says {record and (record['state'], record['reason'])}: {why}")
print(f"{len(ended)} steps ended, {sum(told.values())} tasks were told: {dict(told)}")
print("\n".join(bad))
sys.exit(1 if bad else 0)
