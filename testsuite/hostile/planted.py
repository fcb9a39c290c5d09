#!/usr/bin/env python3
"""planted: tccld runs as nobody (TccldUser), who plants links and pipes where root writes profiles, and another user wants to
read a plan. Root changes no file of its own, and the plan is its job's user's alone.
# level: quick
"""
import os
import pwd
import shutil
import subprocess
import sys

from attack import NOBODY, Target, check, daemons, verdict

OWNER, STRANGER = pwd.getpwnam("daemon").pw_uid, pwd.getpwnam("bin").pw_uid
TOOL = f"{daemons.BUILD}/profiler/tccl-profile"
MODEL = f"{daemons.HERE}/machines/amd-4gpu.json"


def profile(folder, cache):
    return subprocess.run([TOOL, "run", "-q", "--model", MODEL, "--cache", cache, "--gpus", "0,1"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)


def files(folder):
    return {name: os.path.isfile(f"{folder}/{name}") and open(f"{folder}/{name}", "rb").read() for name in sorted(os.listdir(folder))}


def plant(folder):
    """Root's folder, and caches of nobody's that lead there."""
    roots = f"{folder}/roots"
    os.makedirs(roots)
    open(f"{roots}/victim", "w").write("root's\n")
    shutil.chown(folder, "root")
    good = f"{folder}/good"
    os.makedirs(good)
    os.chown(good, NOBODY, -1)
    done = profile(folder, good)
    check(done.returncode == 0, f"root measures into nobody's folder: {done.stdout.strip()[-80:]}")
    name = os.listdir(good)[0]
    check(all(os.stat(os.path.join(at, each)).st_uid == NOBODY for at, _, each_of in os.walk(good) for each in each_of),
          "what root wrote there is nobody's")
    before = files(roots)
    for what in ("the profile's folder", "chains", "sets.jsonl", "sets.jsonl, to a file that is not there", "a pipe"):
        cache = f"{folder}/cache"
        shutil.rmtree(cache, ignore_errors=True)
        os.makedirs(cache)
        if what == "the profile's folder":
            os.symlink(roots, f"{cache}/{name}")
            os.chown(f"{cache}/{name}", NOBODY, -1, follow_symlinks=False)
        else:
            os.makedirs(f"{cache}/{name}")
            link = f"{cache}/{name}/" + ("chains" if what == "chains" else "sets.jsonl")
            if what == "a pipe":
                os.mkfifo(link)
            else:
                os.symlink({"chains": roots, "sets.jsonl": f"{roots}/victim"}.get(what, f"{roots}/new"), link)
            os.chown(f"{cache}/{name}", NOBODY, -1)
            os.chown(link, NOBODY, -1, follow_symlinks=False)
        os.chown(cache, NOBODY, -1)
        profile(folder, cache)
        check(files(roots) == before, f"{what}: nothing of root's is changed")
        for each in set(os.listdir(roots)) - set(before):
            shutil.rmtree(f"{roots}/{each}", ignore_errors=True)
            if os.path.exists(f"{roots}/{each}"):
                os.unlink(f"{roots}/{each}")


def opens(path):
    try:
        open(path).close()
    except OSError:
        sys.exit(1)


def plans(folder):
    """A tccld of nobody's, which root's JOIN is for a job of another user."""
    daemons.start_munged(folder)
    node = daemons.parse_node("amd-4gpu")
    daemons.prepare_nodes(folder, [node])
    daemons.write_conf(folder, daemons.free_ports(1))
    with open(f"{folder}/tccl.conf") as file:
        text = file.read().replace("TccldUser=root", "TccldUser=nobody")
    with open(f"{folder}/tccl.conf", "w") as file:
        file.write(text)
    subprocess.run(["chown", "-R", "nobody", f"{folder}/n1"], check=True)
    child = daemons.spawn(["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", f"{daemons.BUILD}/profiler/tccld",
                           "--config", f"{folder}/tccl.conf", "--node", "n1"], f"{folder}/log")
    if not daemons.wait_for_socket(f"{folder}/n1/tccld.sock", child):
        daemons.die("tccld does not start")
    peer = daemons.connect(folder, 0)
    key = {"cluster": "rig", "job": 7, "het_job": 0, "het_offset": 0, "step": 0, "restart": 0, "run": 0}
    daemons.send(peer, {"type": "join", "key": key, "node": 0, "nodes": ["n1"], "gres": [0, 1, 2, 3], "mode": "on", "uid": OWNER,
                        "gid": OWNER, "timeout_ms": 60000, "min_nodes": 0, "min_gpus": 0})
    plan = daemons.receive(peer)
    if not plan.get("path"):
        check(False, f"there is a plan: {plan}")
        return
    return plan["path"]


def main():
    with Target() as target:
        plant(f"{target.folder}/planted")
        path = plans(f"{target.folder}/other")
        if path:
            for uid, may in ((OWNER, 0), (NOBODY, 0), (STRANGER, 1)):
                who = pwd.getpwuid(uid).pw_name
                check(target.wait(target.fork(opens, path, uid=uid)) == may, f"{who} {'can not' if may else 'can'} read the plan")
    verdict()


main()
