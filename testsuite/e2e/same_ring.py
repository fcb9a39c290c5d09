"""same_ring.py SOLVED NODES RING GBPS BASELINE: is the ring that a step got the one that was solved?

SOLVED is the output of tccl-path solve --json, NODES the step's nodes in order (n1,n2), RING, GBPS
and BASELINE what the tasks saw."""
import json
import re
import sys

solved, nodes, ring, gbps, baseline = sys.argv[1:]
nodes = nodes.split(",")
with open(solved) as file:
    solved = json.load(file)


def close(a, b):
    return abs(a - b) <= 0.006  # printed with two digits


def pieces(text):
    named = re.findall(r"([^\s\[\]]+)\[([^\]]*)\]", text)
    return named if named else [(nodes[0], text.strip())]


def gpus(chain):
    return [int(word) for word in re.split(r"\s*-[a-z0-9]+>\s*", chain) if word.isdigit()]


problems = []
if not close(float(gbps), solved["gbps"]):
    problems.append(f"bandwidth {gbps}, solved {solved['gbps']}")
if not close(float(baseline), solved["baseline_gbps"]):
    problems.append(f"NCCL's own {baseline}, solved {solved['baseline_gbps']}")
found = pieces(ring)
if [name for name, _ in found] != nodes:
    problems.append(f"nodes of the ring: {[name for name, _ in found]}, expected {nodes}")
for (name, chain), expected in zip(found, solved["nodes"]):
    if gpus(chain)[: len(expected["gpus"])] != expected["gpus"] or chain.strip() != expected["chain"].strip():
        problems.append(f"{name}: {chain}, solved {expected['chain']}")
for problem in problems:
    print(problem)
sys.exit(1 if problems or len(solved["nodes"]) != len(found) else 0)
