#!/usr/bin/env python3
"""tuning LOG [--json]: what NCCL reckons with, and what it picks. Reads the log of rank 0 (NCCL_DEBUG=INFO, subsystems INIT,
GRAPH and TUNING; run-ring --log keeps it): its graphs, and its table of latency and bandwidth by collective, algorithm
and protocol. Prints the algorithm and protocol for all-reduces of 1 KiB to 4 GiB, as NCCL takes them from that table
(src/graph/tuning.cc, ncclTopoGetAlgoTime; src/enqueue.cc, topoGetAlgoInfo). With two logs: side by side."""
import argparse
import json
import re
import sys

ALGORITHMS = ["Tree", "Ring"]
PROTOCOLS = ["LL", "LL128", "Simple"]
SIZES = [1 << power for power in range(10, 33)]
GRAPH = re.compile(r"Pattern (\d+), crossNic (\d+), nChannels (\d+), bw ([\d.]+)/([\d.]+), type (\w+)/(\w+), sameChannels (\d)")
COMM = re.compile(r"comm \S+ rank 0 n[Rr]anks (\d+) nNodes (\d+) ")
# Of trees, by protocol and powers of two from 64 B on; the same from 2.21 to 2.32.
CORRECTION = {
    "LL": [1.0, 1.0, 1.0, 1.0, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1.0, 1.0, 1.0, 1.0],
    "LL128": [1.0, 1.0, 1.0, 1.0, 1.0, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1.0, 1.0],
    "Simple": [.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9]}


class Tuning:
    """Of the first communicator in the log."""

    def __init__(self, text):
        self.graphs, self.table, self.picked = {}, {}, []
        self.ranks = self.nodes = self.channels = self.p2p = self.p2p_per_peer = 0
        names = []
        for line in text.splitlines():
            words = line.partition("NCCL INFO ")[2]
            if not words:
                continue
            if words.startswith("Algorithm ") or words.lstrip().startswith("Algorithm "):
                names = words.replace("|", " ").split()[1:]
            self.take(words, names)

    def take(self, words, names):
        found = GRAPH.match(words)
        if found and self.channels == 0:
            kind = "Ring" if found[1] == "4" else "Tree"
            self.graphs.setdefault(kind, {"channels": int(found[3]), "intra": float(found[4]), "inter": float(found[5]),
                                          "types": [found[6], found[7]], "same": int(found[8])})
        found = COMM.match(words)
        if found and self.ranks == 0:
            self.ranks, self.nodes = int(found[1]), int(found[2])
        found = re.match(r"(\d+) coll channels.* (\d+) p2p channels, (\d+) p2p channels per peer", words)
        if found and self.channels == 0:
            self.channels, self.p2p, self.p2p_per_peer = map(int, found.groups())
        found = re.match(r" *(\w+) \|( *[\d.]+/ *[\d.]+ \|)+$", words)
        if found:
            self.take_row(found[1], [cell.split("/") for cell in words.split("|")[1:-1]], names)
        found = re.match(r"(\w+): (\d+) Bytes -> Algo (\w+) proto (\w+)", words)
        if found:
            self.picked.append((found[1], int(found[2]), found[3], found[4]))

    def take_row(self, collective, cells, names):
        row = self.table.setdefault(collective, {})
        for i, (latency, bandwidth) in enumerate(cells):
            row.setdefault((names[i // 3].capitalize(), PROTOCOLS[i % 3]), (float(latency), float(bandwidth)))

    def plateau(self, size, sm):
        """A ring's latency between nodes."""
        return (1.9 if sm < 80 else 1.4) if self.nodes > 1 and size // (self.channels * self.ranks) >= 64 else 1.0

    def time(self, algorithm, protocol, size, sm=80):
        """Of an all-reduce, in microseconds; None: not used."""
        latency, bandwidth = self.table["AllReduce"].get((algorithm, protocol), (0, 0))
        if bandwidth == 0:
            return None
        power = (size >> 6).bit_length() - 1
        if algorithm == "Tree" and 0 <= power < len(CORRECTION[protocol]):
            bandwidth *= CORRECTION[protocol][power]
        if algorithm == "Ring" and protocol == "Simple":
            latency *= self.plateau(size, sm)
        return latency + size / (1000 * bandwidth)

    def pick(self, size, sm=80):
        """NCCL's algorithm and protocol for an all-reduce."""
        times = {(a, p): self.time(a, p, size, sm) for a in ALGORITHMS for p in PROTOCOLS}
        return min((pair for pair in times if times[pair] is not None), key=lambda pair: times[pair])

    def picks(self, sm=80):
        return {size: self.pick(size, sm) for size in SIZES}


def read(path):
    with open(path, errors="replace") as file:
        tuning = Tuning(file.read())
    if "AllReduce" not in tuning.table or tuning.channels == 0:
        sys.exit(f"tccl: tuning: no table of NCCL's in {path}")
    return tuning


def human(size):
    for unit in ["B", "KiB", "MiB", "GiB"]:
        if size < 1024 or unit == "GiB":
            return f"{size} {unit}"
        size //= 1024


def ranges(tuning, sm=80):
    """From which size on what is used."""
    before, parts = None, []
    for size, pick in tuning.picks(sm).items():
        if pick != before:
            parts.append(f"{'/'.join(pick)} from {human(size)}")
        before = pick
    return ", ".join(parts)


def as_json(tuning, sm):
    return {"ranks": tuning.ranks, "nodes": tuning.nodes, "channels": tuning.channels, "graphs": tuning.graphs,
            "table": {name: {"/".join(key): cell for key, cell in row.items() if cell[1]} for name, row in tuning.table.items()},
            "picks": {size: "/".join(pick) for size, pick in tuning.picks(sm).items()}}


def show(path, tuning, sm):
    print(f"{path}: {tuning.ranks} ranks on {tuning.nodes} nodes, {tuning.channels} channels")
    for kind, graph in tuning.graphs.items():
        print(f"  {kind}: {graph['channels']} x {graph['intra']:g}/{graph['inter']:g} GB/s, {'/'.join(graph['types'])}")
    for key, (latency, bandwidth) in tuning.table["AllReduce"].items():
        if bandwidth:
            print(f"  AllReduce {'/'.join(key)}: {latency:g} us, {bandwidth:g} GB/s")
    print(f"  {ranges(tuning, sm)}")


def main():
    parser = argparse.ArgumentParser(prog="tuning", description=__doc__)
    parser.add_argument("logs", nargs="+", metavar="LOG")
    parser.add_argument("--sm", type=int, default=80, help="compute capability of the GPUs, times 10 (default: 80)")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    tunings = [read(path) for path in options.logs]
    if options.json:
        print(json.dumps([as_json(tuning, options.sm) for tuning in tunings], indent=1))
        return
    for path, tuning in zip(options.logs, tunings):
        show(path, tuning, options.sm)


if __name__ == "__main__":
    main()
