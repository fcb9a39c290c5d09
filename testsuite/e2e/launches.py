"""launches.py CLUSTER launch FIRST COUNT NODE...: launches steps of jobs FIRST and up as the plugin does,
without Slurm: JOINs over the nodes' unix sockets, eight at a time, and LEAVEs. Prints "JOB.STEP STATE", as node
0 was told.

launches.py CLUSTER records NODE: prints the same of all records that NODE's tccld keeps.

Runs as root, in a minicluster. The frames are those of profiler/client/README.md."""
import json
import socket
import struct
import sys
from concurrent.futures import ThreadPoolExecutor

cluster, action, *rest = sys.argv[1:]
patience = 180  # seconds


def connect(node):
    peer = socket.socket(socket.AF_UNIX)
    peer.settimeout(patience)
    peer.connect(f"{cluster}/nodes/{node}/tccld.sock")
    return peer


def send(peer, message):
    data = json.dumps({"v": 1, **message}).encode()
    peer.sendall(struct.pack(">I", len(data)) + data)


def read(peer):
    stream = peer.makefile("rb")
    size = struct.unpack(">I", stream.read(4))[0]
    return json.loads(stream.read(size))


def launch(job, nodes):
    """On one node, on two, or with mode off, in turn; another node is first each time."""
    first = nodes[job % len(nodes)]
    names = [first, nodes[(job + 1) % len(nodes)]] if job % 3 == 0 and len(nodes) > 1 else [first]
    mode = "off" if job % 3 == 2 else "on"
    key = {"cluster": "minicluster", "job": job, "het_job": 0, "het_offset": 0, "step": 0, "restart": 0, "run": 0}
    peers = [connect(name) for name in names]
    for number, peer in enumerate(peers):
        send(peer, {"type": "join", "key": key, "node": number, "nodes": ",".join(names), "gres": [0, 1, 2, 3], "mode": mode,
                    "uid": 65534, "gid": 65534, "timeout_ms": 60000, "min_nodes": 0, "min_gpus": 0})
    plans = [read(peer) for peer in peers]
    for peer in peers:
        send(peer, {"type": "leave", "key": key})
        read(peer)
        peer.close()
    return f"{job}.0 {plans[0].get('state') or plans[0]}"


def launches(first, count, *nodes):
    with ThreadPoolExecutor(8) as pool:
        for line in pool.map(lambda job: launch(job, nodes), range(int(first), int(first) + int(count))):
            print(line)


def records(node):
    asked = {}
    while asked is not None:
        with connect(node) as peer:
            send(peer, {"type": "query", "filter": asked})
            page = read(peer)
        for record in page["records"]:
            print(f"{record['job']}.{record['step']} {record['state']}")
        asked = page["next"]


{"launch": launches, "records": records}[action](*rest)
