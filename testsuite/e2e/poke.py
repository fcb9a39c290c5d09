"""poke.py CLUSTER NODE: says to both sockets of a node's tccld what it must not fall for.

Prints a line for each case; exit status 1 if an answer was wrong. Runs as root, in a minicluster. The
frames are those of profiler/client/README.md: four bytes of length, then JSON or a munge credential."""
import json
import os
import re
import socket
import struct
import subprocess
import sys

cluster, node = sys.argv[1:]
unix = f"{cluster}/nodes/{node}/tccld.sock"
munge_socket = f"{cluster}/munge/socket"
patience = 120  # seconds; tccld gives a silent peer far less
problems = []


def tcp_port():
    with open(f"{cluster}/tccl.conf") as file:
        first = int(re.search(r"^n.*=127\.0\.0\.1:(\d+)", file.read(), re.M).group(1))
    return first + int(node[1:]) - 1


def connect(where):
    if where == "unix":
        peer = socket.socket(socket.AF_UNIX)
        peer.settimeout(patience)
        peer.connect(unix)
    else:
        peer = socket.create_connection(("127.0.0.1", tcp_port()), patience)
    return peer


def frame(data):
    data = data if isinstance(data, bytes) else json.dumps(data).encode()
    return struct.pack(">I", len(data)) + data


def credential(message, *options, user=None):
    command = ["munge", f"--socket={munge_socket}", "--string", json.dumps(message)]
    if user:
        command = ["setpriv", "--reuid", user, "--regid", "nogroup", "--clear-groups", "--"] + command
    made = subprocess.run(command + list(options), check=True, capture_output=True)
    return made.stdout.strip()


def answer(peer):
    """Everything until tccld closes; None if it does not."""
    data = b""
    try:
        while True:
            more = peer.recv(65536)
            if not more:
                return data
            data += more
            if len(data) >= 4 and len(data) >= 4 + struct.unpack(">I", data[:4])[0]:
                return data
    except ConnectionError:
        return data
    except socket.timeout:
        return None


def messages(data):
    """The type of the first frame of an answer, '' for none."""
    if not data or len(data) < 5:
        return ""
    text = data[4:4 + struct.unpack(">I", data[:4])[0]]
    if text.startswith(b"MUNGE:"):
        opened = subprocess.run(["unmunge", f"--socket={munge_socket}", "--metadata=/dev/null"], input=text,
                                capture_output=True)
        text = opened.stdout
    if text.startswith(b"tccl-"):
        return text.split()[0][5:].decode() if text.endswith(b"\nend\n") else "torn"
    try:
        return json.loads(text).get("type", "")
    except ValueError:
        return "unreadable"


def case(where, name, data, allowed=("", "error"), then_close=False):
    peer = connect(where)
    try:
        peer.sendall(data)
        if then_close:
            peer.shutdown(socket.SHUT_WR)
        said = answer(peer)
    except (BrokenPipeError, ConnectionResetError):
        said = b""
    peer.close()
    kind = "still waiting" if said is None else messages(said)
    good = kind in allowed
    print(f"{'ok ' if good else 'BAD'} {where}: {name}: {kind or 'closed'}", flush=True)
    if not good:
        problems.append(name)


key = {"cluster": "minicluster", "job": 4000000, "het_job": 0, "het_offset": 0, "step": 0, "restart": 0, "run": 0}
join = {"v": 1, "type": "join", "key": key, "node": 0, "nodes": node, "gres": [0, 1], "mode": "on",
        "uid": 65534, "gid": 65534, "timeout_ms": 1000, "min_nodes": 0, "min_gpus": 0}


def nonce():
    return os.urandom(16).hex()


def changed(message, **members):
    return {**message, **members}


def both_sockets(where):
    case(where, "nothing at all", b"")
    case(where, "half a length", b"\0\0")
    case(where, "an empty frame", frame(b""))
    case(where, "a length of 4 GiB", b"\xff\xff\xff\xff" + b"x" * 100)
    case(where, "a length just over the limit", struct.pack(">I", 1024 * 1024 + 1) + b"{")
    case(where, "less than announced, then silence", struct.pack(">I", 1000) + b"{}")
    case(where, "less than announced, then the end", struct.pack(">I", 1000) + b"{}", then_close=True)
    case(where, "noise", os.urandom(4096))
    case(where, "an HTTP request", b"GET / HTTP/1.0\r\n\r\n")
    case(where, "deep nesting", frame(b"[" * 200000))
    case(where, "not UTF-8", frame(b'{"v":1,"type":"\xff\xfe"}'))


def strange_messages():
    case("unix", "not an object", frame([1, 2]))
    case("unix", "lines that are cut", frame(b"tccl-chain 1\nclosed yes\n"))
    case("unix", "lines of an unknown name", frame(b"tccl-dance 1\nend\n"))
    case("unix", "lines of a later version", frame(b"tccl-chain 99\nend\n"))
    case("unix", "a chain of no step", frame(b"tccl-chain 1\ncluster minicluster\njob 4000000\nhet_job 0\nhet_offset 0\nstep 0\n"
                                             b"restart 0\nrun 0\ngpus 0000:01:00.0\nclosed yes\nend\n"))
    case("unix", "a chain of a cluster with a path in it", frame(b"tccl-chain 1\ncluster ../../etc\njob 1\nhet_job 0\n"
                                                                b"het_offset 0\nstep 0\nrestart 0\nrun 0\nend\n"))
    case("unix", "a number with 400 digits", frame(b"tccl-confirm 1\ncluster c\njob " + b"9" * 400 + b"\nend\n"))
    case("unix", "a chain as JSON", frame({"v": 1, "type": "tccl-chain", "key": key}))
    case("unix", "no version", frame({"type": "join"}))
    case("unix", "a later version", frame(changed(join, v=99)))
    case("unix", "an unknown type", frame({"v": 1, "type": "dance"}))
    case("unix", "a merge on the unix socket", frame(changed(join, type="merge")))
    case("unix", "no key", frame({k: v for k, v in join.items() if k != "key"}))
    case("unix", "a key with a path in it", frame(changed(join, key=changed(key, cluster="../../etc"), mode="off")), ("", "error", "plan"))
    case("unix", "node index beyond the nodes", frame(changed(join, node=7)))
    case("unix", "a negative node index", frame(changed(join, node=-1)))
    case("unix", "no nodes", frame(changed(join, nodes="")))
    case("unix", "a node name with a slash", frame(changed(join, nodes="../n1", timeout_ms=300)), ("", "error", "plan"))
    case("unix", "100000 GPUs", frame(changed(join, gres=list(range(100000)))))
    case("unix", "a GPU index below zero", frame(changed(join, gres=[-1])))
    case("unix", "a huge timeout", frame(changed(join, timeout_ms=2 ** 62)))
    case("unix", "an unknown mode", frame(changed(join, mode="perhaps")))
    case("unix", "numbers as texts", frame(changed(join, node="0")))
    case("unix", "a frame at the limit of the unix socket", frame(b" " * (1024 * 1024)))


def failures():
    """Strange, but well-formed: a plan that says why there is no ring."""
    strange = {
        "a GPU that the profile doesn't know": changed(join, gres=[0, 9]),
        "the same GPU twice": changed(join, gres=[1, 1]),
        "a node list that this node isn't in": changed(join, nodes="n4" if node != "n4" else "n1"),
    }
    for number, (name, message) in enumerate(strange.items()):
        message = changed(message, key=changed(key, job=4000001 + number))
        peer = connect("unix")
        peer.sendall(frame(message))
        said = answer(peer)
        peer.close()
        text = said[4:].decode() if said else ""
        found = json.loads(text) if text else {}
        good = found.get("type") in ("plan", "error") and found.get("state") != "planned" and \
            bool(found.get("reason") or found.get("text"))
        print(f"{'ok ' if good else 'BAD'} unix: {name}: {found.get('reason') or found.get('text') or 'closed'}")
        if not good:
            problems.append(name)


def as_nobody():
    """An ordinary user may not JOIN: forked, so that only the child gives up root."""
    child = os.fork()
    if child == 0:
        os.setgid(65534)
        os.setuid(65534)
        case("unix", "a JOIN of an ordinary user", frame(join))
        os._exit(1 if problems else 0)
    if os.waitpid(child, 0)[1] != 0:
        problems.append("a JOIN of an ordinary user")


def credentials():
    envelope = {"to": node, "from": "poke", "epoch": 0, "nonce": nonce()}
    ask = {"v": 1, "type": "query", "filter": {}, **envelope}
    merge = {"v": 1, "type": "merge", "key": key, "first": 0, "count": 1, **envelope}
    case("tcp", "a credential that isn't one", frame(b"MUNGE:AwQFAAC7tm==:"))
    case("tcp", "JSON without a credential", frame(ask))
    good = credential(ask)
    case("tcp", "a forged credential", frame(good[:-20] + b"A" * 18 + b":"))
    case("tcp", "a good question", frame(good), ("records",))
    case("tcp", "the same credential again", frame(good))
    case("tcp", "the same message in a new credential", frame(credential(ask)))
    case("tcp", "a credential for another node", frame(credential(changed(ask, nonce=nonce(), to="n3" if node != "n3" else "n1"))))
    case("tcp", "no envelope", frame(credential({"v": 1, "type": "query", "filter": {}})))
    long = changed(ask, nonce=nonce(), filter={"filler": [1] * 35000})
    case("tcp", "a long question of root", frame(credential(long)), ("records",))
    case("tcp", "a long question of an ordinary user", frame(credential(changed(long, nonce=nonce()), user="nobody")))
    case("tcp", "a MERGE of an ordinary user", frame(credential(changed(merge, nonce=nonce()), user="nobody")))
    case("tcp", "a RECORD of an ordinary user",
         frame(credential({"v": 1, "type": "record", "records": [{}], **envelope, "nonce": nonce()}, user="nobody")))
    case("tcp", "a PLAN that nobody asked for", frame(credential(changed(merge, type="plan", nonce=nonce()))))
    case("tcp", "an empty credential", frame(credential({})))


def silent_crowd():
    crowd = [connect(where) for where in ("unix", "tcp") for _ in range(300)]
    print(f"ok  {len(crowd)} peers that connect and say nothing")
    return crowd


both_sockets("unix")
both_sockets("tcp")
strange_messages()
failures()
as_nobody()
credentials()
crowd = silent_crowd()
for peer in crowd:
    if answer(peer) is None:
        problems.append("a silent peer was kept")
        break
print(f"{len(problems)} problems")
sys.exit(1 if problems else 0)
