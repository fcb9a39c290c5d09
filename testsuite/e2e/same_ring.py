"""same_ring.py SETS SINGLE MODELS NODES RING GBPS BASELINE: is a step's ring the one that was solved?

SETS, SINGLE and MODELS are outputs of tccl-path solve --json for the step's nodes and GPUs: of their profiles for the best rings, and
for a single one, and of the models for a single one; NODES are the nodes' names in order; RING, GBPS and BASELINE what the tasks
saw."""
import json
import re
import sys

sets, single, models, nodes, ring, gbps, baseline = sys.argv[1:]
nodes = nodes.split()
gap = 0.03  # within which tccl-profile proves each chain
with open(sets) as file:
    solved = json.load(file)
with open(single) as file:
    one = json.load(file)
if solved["reach_gbps"] <= 1.05 * one["reach_gbps"]:
    solved = one
with open(models) as file:
    exact = json.load(file)


def close(a, b):
    return abs(a - b) <= 0.006  # printed with two digits


def pieces(text):
    named = re.findall(r"([^\s\[\]]+)\[([^\]]*)\]", text)
    written = dict(named)  # "n2[= n1]" has the chains of n1
    named = [(name, written.get(chains[1:].strip()) if chains.startswith("=") else chains) for name, chains in named]
    return named if named else [(nodes[0], text.strip())]


problems = []
if not close(float(gbps), solved["reach_gbps"]):
    problems.append(f"bandwidth {gbps}, solved {solved['reach_gbps']}")
if not close(float(baseline), solved["baseline_reach_gbps"]):
    problems.append(f"NCCL's own {baseline}, solved {solved['baseline_reach_gbps']}")
most = solved["bound"] if " | " in ring else exact["gbps"]
part = solved["reach_gbps"] / solved["gbps"]  # as an all-reduce reaches it
if float(gbps) < exact["gbps"] * part * (1 - gap) - 0.006 or float(gbps) > most + 0.006:
    problems.append(f"bandwidth {gbps}, solved from the models {exact['gbps']}, of which {part} are reached")
found = pieces(ring)
if [name for name, _ in found] != nodes:
    problems.append(f"nodes of the ring: {[name for name, _ in found]}, expected {nodes}")
for (name, chains), expected in zip(found, solved["nodes"]):
    wanted = " | ".join(chain["chain"] for chain in expected["chains"]) if "chains" in expected else expected["chain"]
    if chains.strip() != wanted:
        problems.append(f"{name}: {chains}, solved {wanted}")
for problem in problems:
    print(problem)
sys.exit(1 if problems or len(solved["nodes"]) != len(found) else 0)
