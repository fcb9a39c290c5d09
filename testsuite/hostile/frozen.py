#!/usr/bin/env python3
"""frozen: RunDir is on a disk that hangs (an ext4 of its own, frozen). tccld goes on: a step is told that it has no ring, and why; a step's
end, questions and records of another node are answered. Once the disk goes on there are rings again, and nothing is left of the steps that
had none. A tccld that is started while the disk hangs says so, can be ended, and begins once the disk goes on, with the steps that run. Where no
file system can be mounted, nothing is tried.
# level: quick
"""
import contextlib
import itertools
import os
import shutil
import subprocess
import time

from attack import Target, check, comes, daemons, record, skip, verdict

SOON = 60  # seconds, on a busy machine; tccld that hangs with the disk answers nothing


class Frozen(Target):
    def __init__(self):
        super().__init__()
        self.disk, image = f"{self.folder}/disk", f"{self.folder}/image"
        self.conf.append(f"RunDir={self.disk}/run")
        os.makedirs(self.disk)
        with open(image, "wb") as file:
            file.truncate(16 << 20)
        for command in (["mkfs.ext4", "-q", "-F", image], ["mount", "-o", "loop", image, self.disk]):
            if not shutil.which(command[0]) or subprocess.run(command, stderr=subprocess.DEVNULL).returncode:
                self.remove()
                skip(f"{command[0]} does not work here")

    def freeze(self):
        self.undo.callback(subprocess.run, ["fsfreeze", "-u", self.disk], stderr=subprocess.DEVNULL)
        subprocess.run(["fsfreeze", "-f", self.disk], check=True)

    def spawn_frozen(self):
        """A tccld that can't begin yet, and has said so."""
        said = self.said()
        process = daemons.spawn([daemons.TCCLD, "--config", f"{self.folder}/tccl.conf", "--node", "n1"], f"{self.folder}/n1/log")
        check(comes(lambda: self.said() > said), "a tccld that is started says that its RunDir hangs")
        check(process.poll() is None, "and waits")
        return process

    def said(self):
        with open(f"{self.folder}/n1/log") as file:
            return file.read().count("(RunDir) does not answer")

    def thaw(self):
        self.undo.close()

    def say(self, message):
        """A message over the unix socket, and its answer; None: none has come."""
        with self.unix() as peer:
            peer.settimeout(SOON)
            try:
                return self.ask(peer, message)
            except TimeoutError:
                return None

    def begin(self, job):
        return self.say({"type": "join", "key": key_of(job), "node": 0, "nodes": "n1", "gres": [0, 1, 2, 3], "mode": "on",
                         "uid": os.getuid(), "gid": os.getgid(), "timeout_ms": SOON * 1000, "hidden": False, "min_nodes": 0,
                         "min_gpus": 0, "user": "tester", "partition": "all", "job_name": "rig"}) or {}

    def end_of(self, job):
        return (self.say({"type": "leave", "key": key_of(job)}) or {}).get("type")

    def left(self):
        return sorted(name for name in os.listdir(f"{self.disk}/run") if "-" in name and name[0].isdigit())

    def plans(self):
        return [name for name in self.left() if self.has_plan(f"{self.disk}/run/{name}/plan")]

    def has_plan(self, path):
        """A record may be there alone."""
        with contextlib.suppress(FileNotFoundError), open(path) as file:
            return file.readline().startswith("tccl-plan ")
        return False


def key_of(job):
    return {"cluster": "rig", "job": job, "het_job": 0, "het_offset": 0, "step": 0, "restart": 0, "run": 0}


with Frozen() as target:
    check(target.begin(1).get("state") == "planned", "a step has its ring")
    check(len(target.plans()) == 1, "and its plan")
    target.freeze()
    for job in (2, 3):
        start = time.monotonic()
        plan = target.begin(job)
        print(f"with the disk frozen step {job} was answered after {time.monotonic() - start:.1f} s", flush=True)
        check(plan.get("state") == "failed" and "RunDir does not answer" in plan.get("reason", ""), f"step {job} is told so")
    check(target.end_of(1) == "ok", "a step may end")
    check((target.say({"type": "query", "filter": {}}) or {}).get("type") == "records", "a question is answered")
    check(target.tell(target.tcp, record(4)) is True, "another node's record is stored")
    target.thaw()
    jobs = itertools.count(5)
    check(comes(lambda: target.begin(next(jobs)).get("state") == "planned"), "then there are rings again")
    check(comes(lambda: not any(name.startswith(("2.", "3.")) for name in target.plans())), "what was written late is taken back")
    check(all(target.end_of(job) == "ok" for job in range(1, next(jobs))), "all steps end")
    check(comes(lambda: not target.left()), "and nothing is left of them")
    check(target.begin(1).get("state") == "planned", "a step runs")
    target.freeze()
    killed = target.tcclds[0]
    killed.kill()  # what waits for the disk ends with it, and so may this one
    daemons.children.remove(killed)
    process = target.spawn_frozen()
    process.terminate()
    process.wait(SOON)
    daemons.children.remove(process)
    target.tcclds[0] = target.spawn_frozen()
    target.thaw()
    killed.wait(SOON)
    if not daemons.wait_for_socket(f"{target.folder}/n1/tccld.sock", target.tcclds[0]):
        daemons.children.remove(target.tcclds[0])
        target.start_again()  # as systemd would: the one that was killed had the lock until now
    check(target.tcclds[0].poll() is None, "it begins once the disk goes on")
    check(len(target.plans()) == 1, "the step has its plan")
    check(target.end_of(1) == "ok" and comes(lambda: not target.left()), "and ends")
verdict()
