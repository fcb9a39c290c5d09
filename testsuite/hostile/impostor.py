#!/usr/bin/env python3
"""impostor: nobody listens on the port where root's tccl-profile run looks for a tccl-profile peer: says what a peer would
say, hands on to the real one what comes, or sends proofs that root has made for something else. Nothing is measured against
nobody, and each time one line says why.
# level: quick
"""
import json
import os
import re
import socket
import subprocess
import threading

from attack import Munge, Target, check, daemons, frame, verdict

MEASURE = f"{daemons.BUILD}/testsuite/unit/measure-nics"
PROFILE = f"{daemons.BUILD}/profiler/tccl-profile"
PROTOCOL = 2
NONCE = "0123456789abcdef" * 2
GREETING = {"v": 1, "type": "peer", "protocol": PROTOCOL, "program": "x", "munge": True, "to": "run", "from": "peer",
            "epoch": 0, "nonce": NONCE}


def end_of(address):
    return f"{address[0]} {address[1]}"


def proof(guest, hello, **changes):
    """What the peer would say on this connection."""
    return {"v": 1, "type": "welcome", "protocol": PROTOCOL, "program": "x", "nonce": hello["own"],
            "from": end_of(guest.getsockname()), "to": end_of(guest.getpeername()), **changes}


def answers(target, listener, greeting, answer):
    """As nobody: greets who comes, reads the hello (anybody may), and answers with what answer() makes of it."""
    socket_of_munged = f"{target.folder}/munge/socket"
    while True:
        guest, _ = listener.accept()
        guest.sendall(frame(greeting))
        sealed = daemons.receive_bytes(guest)
        if not sealed:
            continue
        hello = json.loads(Munge.decode(socket_of_munged, sealed)) if sealed.startswith(b"MUNGE:") else json.loads(sealed)
        said = answer(guest, hello, sealed)
        if said is not None:
            guest.sendall(frame(said))
        daemons.receive_bytes(guest)


def hands_on(source, sink):
    while data := source.recv(65536):
        sink.sendall(data)
    sink.shutdown(socket.SHUT_WR)


def relays(listener, real):
    """As nobody: what comes goes to the real peer, and its answers come back."""
    while True:
        guest, _ = listener.accept()
        peer = socket.create_connection(real)
        for ends in ((guest, peer), (peer, guest)):
            threading.Thread(target=hands_on, args=ends, daemon=True).start()


def measure(target, port, munge=None, tries=20):
    """What root's measuring says, and whether a rate was measured."""
    for _ in range(tries):
        done = subprocess.run([MEASURE, f"127.0.0.1:{port}", munge if munge is not None else f"{target.folder}/munge/socket",
                               "5", "no_nic0", "n0>m0"], capture_output=True, text=True, timeout=daemons.PATIENCE)
        said = done.stdout.strip()
        if "in time" not in said:
            break
    return said, bool(re.fullmatch(r"n0>m0: [0-9.]+", said))


def listen():
    return socket.create_server(("127.0.0.1", 0))


def try_one(target, what, why, greeting, answer):
    listener = listen()
    pid = target.fork(answers, target, listener, greeting, answer)
    said, measured = measure(target, listener.getsockname()[1], tries=1 if why == "in time" else 20)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    target.pids.remove(pid)
    listener.close()
    check(not measured and re.search(why, said), f"{what}: {said}")


def impostors(target):
    """(what it does, what is said of it, its greeting, its answer)"""
    munge = f"{target.folder}/munge/socket"

    def sealed_by_nobody(guest, hello, sealed):
        return Munge.encode(munge, json.dumps(proof(guest, hello)).encode())

    old = Munge.encode(munge, json.dumps({**GREETING, "type": "welcome", "from": "127.0.0.1 1", "to": "127.0.0.1 2"}).encode())
    other = {"v": 1, "type": "join", "protocol": PROTOCOL, "program": "x"}
    made_for_other = Munge.encode(munge, json.dumps(other).encode())
    plain = lambda guest, hello, sealed: proof(guest, hello)
    return [
        ("no proof is offered", "runs without munge \\(--no-munge\\)", {**GREETING, "munge": False}, plain),
        ("the proof is in no credential", "sent no munge credential", GREETING, plain),
        ("the proof is nobody's", "is run by user 65534, and not by root", GREETING, sealed_by_nobody),
        ("our own hello comes back", "its munge credential is not valid: munge: |is no tccl-profile peer", GREETING,
         lambda guest, hello, sealed: sealed),
        ("a proof of root's for another connection", "its munge credential is for another connection", GREETING,
         lambda guest, hello, sealed: old),
        ("something else that root has said", "is no tccl-profile peer", GREETING, lambda guest, hello, sealed: made_for_other),
        ("a damaged credential", "its munge credential is not valid: munge: |no munge credential", GREETING,
         lambda guest, hello, sealed: old[:60] + b"AAAA" + old[64:]),
        ("a frame of a gigabyte", "beyond the limit", GREETING, lambda guest, hello, sealed: guest.sendall(b"\x3f\xff\xff\xff")),
        ("nothing more is said", "in time", GREETING, lambda guest, hello, sealed: None),
        ("an older peer", "speaks protocol 1, this tccl-profile .* speaks 2: update the older side",
         {**GREETING, "protocol": 1}, plain),
        ("a refusal with a terminal's escape", "refuses: [^\x1b]*$", GREETING,
         lambda guest, hello, sealed: {"v": 1, "type": "refused", "reason": "\x1b[2J go away"}),
    ]


def bound_proofs(target):
    """Root's proofs, each right but for one member: only what fits in all is believed."""
    munge = f"{target.folder}/munge/socket"
    for name, value in ((None, None), ("nonce", NONCE), ("from", "127.0.0.1 9"), ("to", "127.0.0.1 9"), ("nonce", 7),
                        ("type", "measure")):
        listener = listen()

        def serve(changes):
            while True:
                try:
                    guest, _ = listener.accept()
                except OSError:
                    return
                guest.sendall(frame(GREETING))
                sealed = daemons.receive_bytes(guest)
                hello = json.loads(Munge.decode(munge, sealed))
                guest.sendall(frame(Munge.encode(munge, json.dumps(proof(guest, hello, **changes)).encode())))
                kept.append(guest)

        kept = []
        threading.Thread(target=serve, args=({name: value} if name else {},), daemon=True).start()
        said, _ = measure(target, listener.getsockname()[1])
        listener.close()
        for guest in kept:
            guest.close()
        believed = "another connection" not in said and "no tccl-profile peer" not in said
        check(believed == (name is None), f"a proof of root's with another {name}: {said}")


def start_peer(target, port):
    daemons.spawn([PROFILE, "peer", "--config", f"{target.folder}/tccl.conf", "--listen", f"127.0.0.1:{port}"],
                  f"{target.folder}/peer.log")
    for _ in range(daemons.PATIENCE * 20):
        with open(f"{target.folder}/peer.log") as file:
            if "listening" in file.read():
                return
        threading.Event().wait(0.05)
    check(False, "the peer listens")


def main():
    with Target() as target:
        for each in impostors(target):
            try_one(target, *each)
        bound_proofs(target)
        (real,) = daemons.free_ports(1)
        start_peer(target, real)
        said, measured = measure(target, real)
        check(measured, f"the real peer: {said}")
        listener = listen()
        target.fork(relays, listener, ("127.0.0.1", real))
        said, measured = measure(target, listener.getsockname()[1])
        check(not measured and "connect directly, without a proxy" in said, f"a relay: {said}")
        said, measured = measure(target, real, munge="")
        check(not measured and "leave out --no-munge" in said, f"--no-munge against a peer that wants a credential: {said}")
    verdict()


main()
