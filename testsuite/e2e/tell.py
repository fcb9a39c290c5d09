"""tell.py CLUSTER NODE TYPE [MEMBERS] [--as USER] [--over unix]: asks NODE's tccld as USER (root), over TCP as
node n2 does, or over its unix socket; MEMBERS is a JSON object that is added to the message. Prints the answer.

tell.py CLUSTER NODE records FIRST COUNT DAYS [UID]: delivers records of jobs FIRST and up, of steps that started
so many days ago; says how many of them were taken.

Runs as root, in a minicluster. The frames are those of profiler/client/README.md."""
import argparse
import json
import os
import pwd
import re
import socket
import struct
import subprocess
import time

options = argparse.ArgumentParser()
options.add_argument("cluster")
options.add_argument("node")
options.add_argument("type")
options.add_argument("rest", nargs="*")
options.add_argument("--as", dest="user", default="root")
options.add_argument("--over", choices=["unix", "tcp"], default="tcp")
options = options.parse_intermixed_args()
munge = f"--socket={options.cluster}/munge/socket"


def port():
    with open(f"{options.cluster}/tccl.conf") as file:
        first = int(re.search(r"^n.*=127\.0\.0\.1:(\d+)", file.read(), re.M).group(1))
    return first + int(options.node[1:]) - 1


def exchange(peer, data):
    peer.settimeout(120)
    peer.sendall(struct.pack(">I", len(data)) + data)
    stream = peer.makefile("rb")
    return stream.read(struct.unpack(">I", stream.read(4))[0])


def as_user(*command):
    if options.user == "root":
        return list(command)
    return ["setpriv", "--reuid", options.user, "--regid", "nogroup", "--clear-groups", "--", *command]


def over_tcp(message):
    message = {**message, "to": options.node, "from": "n2", "epoch": 0, "nonce": os.urandom(16).hex()}
    made = subprocess.run(as_user("munge", munge, "--string", json.dumps(message)), check=True, capture_output=True)
    with socket.create_connection(("127.0.0.1", port())) as peer:
        answer = exchange(peer, made.stdout.strip())
    opened = subprocess.run(as_user("unmunge", munge, "--metadata=/dev/null"), input=answer, check=True,
                            capture_output=True)
    return json.loads(opened.stdout)


def over_unix(message):
    with socket.socket(socket.AF_UNIX) as peer:
        os.seteuid(pwd.getpwnam(options.user).pw_uid)
        peer.connect(f"{options.cluster}/nodes/{options.node}/tccld.sock")
        os.seteuid(0)
        return json.loads(exchange(peer, json.dumps(message).encode()))


def ask(message):
    return (over_unix if options.over == "unix" else over_tcp)({"v": 1, **message})


def deliver(first, count, days, uid=0):
    taken = 0
    for job in range(first, first + count):
        record = {"cluster": "minicluster", "job": job, "step": 0, "uid": uid, "state": "planned", "reporter": 0,
                  "start": int(time.time()) - days * 86400 - 60, "nodes": "n[1-2]", "gpus": 8, "gbps": 20,
                  "baseline_gbps": 10}
        taken += ask({"type": "record", "records": [record]})["type"] == "ok"
    print(taken)


if options.type == "records":
    deliver(*map(int, options.rest))
else:
    print(json.dumps(ask({"type": options.type, **json.loads("".join(options.rest) or "{}")})))
