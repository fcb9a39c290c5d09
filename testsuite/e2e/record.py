"""record.py FILE STEP FIELD: a field of the latest record of a step in what tcclacct --json printed."""
import json
import re
import sys

path, step, field = sys.argv[1:]
names = {"batch": 0xFFFFFFFB, "extern": 0xFFFFFFFC, "interactive": 0xFFFFFFFA}
with open(path) as file:
    found = json.load(file)
if isinstance(found, dict):
    found = found["records"]
found = [r for r in found if str(r["step"]) in (step, str(names.get(step)))]
for record in found:  # whoever makes a reason names its class, and its node
    assert not record["reason"] or record["reason_class"] not in ("", "other"), record
    assert not re.match("n[0-9]+: ", record["reason"]) or record["reason_node"], record
if found:
    print(found[-1][field])
