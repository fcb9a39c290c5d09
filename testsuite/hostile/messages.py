#!/usr/bin/env python3
"""messages: root and four users say to two tccld what is right, what is nearly right and what is noise, over the unix socket and
TCP, in good frames, torn ones and whole rows of them, and read the answers, or not, or hang up. Both go on running: steps
get their plans meanwhile, also over both nodes, users their answers, and nothing is left open in the end. Where TCCL_TCCLD is
a tccld with sanitizers, these have nothing to say.
messages SECONDS: how long. TCCL_SEED repeats what is said, if not in which order tccld hears it.
# level: quick
# build: sanitize
"""
import contextlib
import copy
import json
import os
import random
import re
import signal
import struct
import sys
import time
import unicodedata

from attack import MIB, NOBODY, Munge, Target, check, daemons, frame, record, verdict

SEED = int(os.environ.get("TCCL_SEED", time.time_ns() % 2**31))
USERS = [0, NOBODY, 1, 2, 3]
JOBS = 20  # whose steps are spoken about, each of one user
HELD = 30  # connections that a user leaves open
GPUS = ["0000:01:00.0", "0000:41:00.0", "0000:44:00.0", "0000:61:00.0"]  # of the model
ODD = [None, True, False, 0, -1, 1, 2**31, 2**32, 2**53, 2**63 - 1, -2**63, 1e308, 0.5, "", "n1", "x" * 300, "x" * 70000, "../../etc/passwd",
       "%s%n", "\x00", "\ud7ff", "n[1-99999]", [], {}, [[]], [None] * 100, {"a": {"b": {"c": 1}}}, list(range(3000))]
SANITIZERS = re.compile("AddressSanitizer|LeakSanitizer|runtime error|UndefinedBehavior")


class Speaker:
    """One user, who says things at random."""

    def __init__(self, target, uid, number):
        self.target, self.uid, self.random = target, uid, random.Random(f"{SEED}-{number}")
        mine = [self.query, self.summary]
        others = [self.join] * 10 + [self.leave, self.merge, self.built, self.agree_below, self.record, self.lost]
        self.far = mine * (1 if uid == 0 else 40) + others  # what others may not say is soon refused
        self.here = self.far + [self.chain, self.confirm, self.agree] * (2 if uid == 0 else 40)
        self.held, self.count = [], 0

    # ---- what is right ----

    def key(self, own=False):
        """own: mostly of a step that this user may ask about."""
        job = self.random.randint(1, JOBS)
        if own and self.random.random() < 0.8:
            job += (USERS.index(self.uid) - job) % len(USERS)
        return {"cluster": "rig", "job": job, "het_job": 0, "het_offset": 0, "step": 0, "restart": 0, "run": 0}

    def filter(self):
        some = {"jobs": [{"job": self.random.randint(1, JOBS)}], "users": ["nobody"], "nodes": ["n1", "n[1-9]"], "states": ["planned"],
                "start": 0, "end": 1 << 40, "limit": self.random.randint(1, 100), "names": ["rig"], "reasons": ["no profile"]}
        return {name: some[name] for name in self.random.sample(sorted(some), self.random.randint(0, 3))}

    def query(self):
        return {"type": "query", "filter": self.filter()}

    def node(self):
        some = {"job": self.random.choice([0, self.random.randint(1, JOBS), 1 << 40]), "step": 0, "since_ms": self.random.choice([0, 5000, -1])}
        return {"type": "node", **{name: some[name] for name in self.random.sample(sorted(some), self.random.randint(0, 3))}}

    def summary(self):
        return {"type": "summary", "filter": self.filter()}

    def step(self, key, nodes, **members):
        return {"type": "join", "key": key, "node": 0, "nodes": ",".join(nodes), "gres": [0, 1, 2, 3], "mode": "on",
                "uid": USERS[key["job"] % len(USERS)], "gid": 0, "timeout_ms": 2000, "min_nodes": 0, "min_gpus": 0, "user": "tester",
                "partition": "all", "job_name": "rig", **members}

    def join(self):
        nodes = self.random.choice([["n1"], ["n1"], ["n2"], ["n1", "n2"], ["n1", "n2", "n3"]])
        return self.step(self.key(), nodes, node=self.random.randrange(len(nodes)),
                         gres=self.random.choice([[0, 1, 2, 3], [0, 1], [2]]), timeout_ms=self.random.choice([20, 2000, 5000]),
                         mode=self.random.choice(["on", "require", "auto", "off"]))

    def leave(self):
        return {"type": "leave", "key": self.key()}

    def merge(self):
        return {"type": "merge", "key": self.key(), "n_nodes": 2, "node": 1, "timeout_ms": 1000, "wait_ms": 900, "reason": "n2: no profile"}

    def built(self):
        nothing = {"nodes": 0, "lowest": -1, "text": ""}
        return {"type": "built", "key": self.key(), "n_nodes": 2, "node": 1, "start": int(time.time()),
                "said": [nothing, nothing, nothing, {"nodes": 1, "lowest": 1, "text": ""}, nothing], "order": [0, 4, 0]}

    def agree_below(self):
        return {"type": "agree", "key": self.key(), "n_nodes": 2, "node": 1, "start": int(time.time()),
                "comm": f"{self.random.randint(1, 9):016x}", "will": self.random.choice([True, True, False])}

    def record(self):
        return {"type": "record", "records": [record(self.random.randint(1, JOBS), uid=self.random.choice(USERS))]}

    def lost(self):
        return {"type": "lost", "ledger": f"{self.random.getrandbits(64):016x}", "records": 1, "first": 1, "last": 2}

    def lines(self, name, **members):
        return "\n".join([f"tccl-{name} 1", *(f"{member} {value}" for member, value in {**self.key(own=True), **members}.items()), "end", ""])

    def chain(self):
        gpus = self.random.sample(GPUS, self.random.randint(1, 4))
        return self.lines("chain", gpus=" ".join(gpus), closed=self.random.choice(["yes", "no"]))

    def confirm(self):
        return self.lines("confirm", verdict=self.random.choice(["applied", "differs", "not used", "unknown", "begun"]),
                          text="because", ranks=self.random.randint(-1, 9), gpus=4, lowest=0, nccl=22907, whole="yes")

    def agree(self):
        return self.lines("agree", comm=f"{self.random.randint(1, 9):016x}", will=self.random.choice(["yes", "yes", "no"]))

    # ---- what is nearly right ----

    def spoil(self, message):
        """One value somewhere in it is another one, or gone, or new."""
        place = message
        while True:
            keys = sorted(place) if isinstance(place, dict) else range(len(place))
            if not keys:
                return
            chosen = self.random.choice(keys)
            if isinstance(place[chosen], (dict, list)) and place[chosen] and self.random.random() < 0.7:
                place = place[chosen]
                continue
            if isinstance(place, dict) and self.random.random() < 0.2:
                del place[chosen]
            else:
                place[chosen] = copy.deepcopy(self.random.choice(ODD))
            return

    def scratch(self, data):
        """Bytes changed, cut out or doubled."""
        data = bytearray(data)
        for _ in range(self.random.randint(1, 4)):
            if not data:
                break
            at = self.random.randrange(len(data))
            how = self.random.randrange(4)
            if how == 0:
                data[at] = self.random.randrange(256)
            elif how == 1:
                del data[at:at + self.random.randint(1, 20)]
            elif how == 2:
                data[at:at] = data[at:at + self.random.randint(1, 2000)]
            else:
                data[at:at] = self.random.choice([b"\0", b"{", b"[" * 3000, b'"', b"\\u0000", b"\xff", b"\n", b"9" * 400])
        return bytes(data)

    def content(self, where):
        """Of a frame for n1 or n2."""
        message = self.random.choice(self.far if where else self.here)()
        if isinstance(message, str):
            text = message.encode()
        else:
            message = {"v": 1, **message}
            if where > 0:
                message = self.target.envelope(message, where)
            spoiled = self.random.choice([0, 0, 1, 1, 3])
            for _ in range(spoiled):
                self.spoil(message)
            if where > 0 and not spoiled:  # else its epoch might shut the true n2 out
                message["from"] = self.random.choice(["login", "n2"])
            text = json.dumps(message).encode()
        if self.random.random() < 0.3 if isinstance(message, str) else self.random.random() < 0.1:
            text = self.scratch(text)
        if where == 0:
            return text
        if self.random.random() < 0.1:
            return self.scratch(b"MUNGE:AwQDAA" + bytes(self.random.choices(b"ABCDabcd+/", k=400)) + b":")
        return Munge.encode(f"{self.target.folder}/munge/socket", text[:500000])

    def frames(self, where):
        data = b"".join(frame(self.content(where) or b"x") for _ in range(self.random.choice([1, 1, 1, 2, 5])))
        if self.random.random() < 0.05:
            data = struct.pack(">I", self.random.choice([0, 1, 400, 2**20, 2**20 + 1, 2**32 - 1])) + data[4:]
        if self.random.random() < 0.1:
            data = data[:self.random.randrange(len(data))]
        return data

    # ---- saying it ----

    def connect(self, where):
        node = self.random.choice([1, 2])
        if where == 0:
            return self.target.unix(node)
        return self.target.tcp(where, source=f"127.0.0.{self.random.choice([1, 1, 1, 66, 67])}")

    def say(self):
        where = self.random.choice([0, 0, 0, 1, 2])  # the unix socket, n1, n2
        data = self.frames(where)
        peer = self.connect(where)
        peer.settimeout(self.random.choice([0.002, 0.05, 0.3]))
        with contextlib.suppress(OSError):
            if self.random.random() < 0.2 and len(data) > 1:
                half = self.random.randrange(len(data))
                peer.sendall(data[:half])
                time.sleep(0.001)
                peer.sendall(data[half:])
            else:
                peer.sendall(data)
            for _ in range(self.random.choice([0, 1, 1, 3])):
                if not peer.recv(self.random.choice([1, 4, 65536])):
                    break
        self.held.append(peer)
        while len(self.held) > HELD or self.held and self.random.random() < 0.8:
            self.held.pop(self.random.randrange(len(self.held))).close()

    def begin_step(self):
        """One of which CHAIN, CONFIRM and AGREE may speak."""
        key, node = self.key(), self.random.choice([1, 2])
        with self.target.unix(node) as peer:
            peer.settimeout(5)
            for message in ({"type": "leave", "key": key}, self.step(key, [f"n{node}"])):
                self.target.ask(peer, message)

    def go_on(self, until):
        while time.monotonic() < until:
            try:
                if self.uid == 0 and self.count % 20 == 0:
                    self.begin_step()
                self.say()
            except OSError as failed:  # tccld hung up, or has no room
                if isinstance(failed, ConnectionRefusedError):
                    time.sleep(0.05)
            self.count += 1
        print(f"uid {self.uid}: {self.count} times", flush=True)


def descriptors(target, node):
    return len(os.listdir(f"/proc/{target.tcclds[node - 1].pid}/fd"))


def honest(target, job):
    """A step of one node, one of both, and a user's question."""
    target.join({"job": job})
    key = {"cluster": "rig", "job": job + 1, "het_job": 0, "het_offset": 0, "step": 0, "restart": 0, "run": 0}
    daemons.join_all(target.folder, target.nodes, key)
    daemons.leave_all(target.folder, target.nodes, key)
    with target.unix() as peer:
        return target.ask(peer, {"type": "query", "filter": {"jobs": [{"job": job}]}})["type"] == "records"


def settles(target, before):
    """Are descriptors closed that were open for those who spoke?"""
    until = time.monotonic() + 120
    while time.monotonic() < until:
        now = [descriptors(target, node) for node in (1, 2)]
        if all(a <= b + 16 for a, b in zip(now, before)):
            break
        time.sleep(0.2)
    print(f"descriptors: {before} before, {now} in the end", flush=True)
    return all(a <= b + 16 for a, b in zip(now, before))


def stop(target):
    """Exit statuses; sanitizers look for leaks then."""
    statuses = []
    for child in target.tcclds:
        child.send_signal(signal.SIGTERM)
        statuses.append(child.wait(daemons.PATIENCE))
        daemons.children.remove(child)
    return statuses


def is_text(target):
    """Is all of the logs UTF-8 without control characters? Else journald hides lines."""
    for node in (1, 2):
        with open(f"{target.folder}/n{node}/log", "rb") as file:
            data = file.read()
        with contextlib.suppress(UnicodeDecodeError):
            if all(c == "\n" or unicodedata.category(c) != "Cc" for c in data.decode()):
                continue
        return False
    return True


def reports(target):
    for node in (1, 2):
        with open(f"{target.folder}/n{node}/log", errors="replace") as file:
            lines = file.readlines()
        found = next((i for i, line in enumerate(lines) if SANITIZERS.search(line)), None)
        if found is not None:
            print("".join(lines[found:found + 60]), flush=True)
            return True
    return False


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 20
    print(f"seed {SEED}; {daemons.TCCLD}", flush=True)
    with Target(nodes=2) as target:
        check(honest(target, 900000), "all is well before")
        before = [descriptors(target, node) for node in (1, 2)]
        memory, until = target.memory(), time.monotonic() + seconds
        speaking = [target.fork(Speaker(target, uid, i).go_on, until, uid=uid) for i, uid in enumerate(USERS)]
        rounds, good = 0, 0
        while time.monotonic() < until and all(child.poll() is None for child in target.tcclds):
            rounds += 1
            with contextlib.suppress(OSError, SystemExit):
                good += honest(target, 900000 + 2 * rounds)
            time.sleep(0.2)
        check(all([target.wait(pid) == 0 for pid in speaking]), "all have spoken to the end")
        check(good == rounds > 0, f"of {rounds} honest ones {good} had their rings and answers")
        check(settles(target, before), "nothing stays open")
        print(f"memory: {memory / MIB:.0f} MiB before, {target.memory() / MIB:.0f} in the end")
        check(stop(target) == [0, 0], "both end as they should")
        check(not reports(target), "sanitizers have nothing to say")
        check(is_text(target), "the logs are text")
    verdict()


main()
