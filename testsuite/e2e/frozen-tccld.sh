#!/bin/bash
# A tccld that was given no time for longer than a connection may be silent has not heard what came meanwhile: it
# listens once more before it hangs up, on both sockets.
# cluster: mixed
# level: quick
. "$(dirname "$0")/lib.sh"

at_end+=("kill -CONT $(<"$cluster/nodes/n2/tccld.sock.lock") || true")
python3 - "$cluster" n2 <<'PYTHON'
import json, os, re, signal, socket, struct, subprocess, sys, time
cluster, node = sys.argv[1:]
with open(f"{cluster}/nodes/{node}/tccld.sock.lock") as file:
    tccld = int(file.read())
with open(f"{cluster}/tccl.conf") as file:
    first = int(re.search(r"^n.*=127\.0\.0\.1:(\d+)", file.read(), re.M).group(1))
question = {"v": 1, "type": "query", "filter": {"limit": 1}}


def sealed():
    message = {**question, "to": node, "from": "frozen", "epoch": 0, "nonce": os.urandom(16).hex()}
    made = subprocess.run(["munge", f"--socket={cluster}/munge/socket", "--string", json.dumps(message)], check=True,
                          capture_output=True)
    return made.stdout.strip()


def connect(family, address):
    peer = socket.socket(family)
    peer.settimeout(120)
    peer.connect(address)
    return peer


def send(peer, data):
    peer.sendall(struct.pack(">I", len(data)) + data)


def freeze(door, message, other_message):
    """The answer's length after a freeze, or None if the machine was too slow to freeze tccld in time."""
    silent = connect(*door)
    begun = time.monotonic()
    with connect(*door) as other:  # when it is answered, the one before has been accepted
        send(other, other_message)
        if len(other.recv(4)) != 4:
            return None
    os.kill(tccld, signal.SIGSTOP)
    try:
        if time.monotonic() > begun + 0.7:
            return None
        send(silent, message)
        time.sleep(1.5)  # longer than a connection may be silent
    finally:
        os.kill(tccld, signal.SIGCONT)
    return len(silent.recv(4))


plain = json.dumps(question).encode
for family, address, message in ((socket.AF_UNIX, f"{cluster}/nodes/{node}/tccld.sock", plain),
                                 (socket.AF_INET, ("127.0.0.1", first + int(node[1:]) - 1), sealed)):
    answer = None
    for _ in range(20):
        if answer is None:
            answer = freeze((family, address), message(), message())
    if answer is None:
        print("this machine is too busy to freeze a tccld within 0.7 s")
        sys.exit(77)
    print(family.name, answer)
    if answer != 4:
        sys.exit(f"{family.name}: closed without an answer")
PYTHON
