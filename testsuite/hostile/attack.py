"""attack.py: what the attacks share: a tccld to attack, processes of the user nobody, credentials, tccld's memory."""
import atexit
import contextlib
import ctypes
import encodings.idna  # of socket; a process of nobody may not be able to read Python's modules any more
import glob
import json
import os
import pwd
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import traceback

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
sys.dont_write_bytecode = True
import daemons

NOBODY = pwd.getpwnam("nobody").pw_uid
MIB = 1 << 20
REMOVAL = 5  # seconds
TRIES = 4  # to find the machine not busy
IS_BUSY = os.path.join(daemons.HERE, "is-busy")


def skip(why):
    print(why)
    sys.exit(77)


def check(holds, what):
    """Every attack ends with these: what held, and what did not."""
    print("holds:" if holds else "FAILED:", what, flush=True)
    check.failures += not holds


check.failures = 0


def unless_busy(holds, what, again=None):
    """As check(), for what takes time; where it doesn't hold and the machine is busy, that is only said. again: measures it
    anew, since others may have had the cores then and not now."""
    for _ in range(TRIES if again else 0):
        if holds or not subprocess.run([IS_BUSY]).returncode:
            break
        holds = again()
    if holds or subprocess.run([IS_BUSY]).returncode:
        check(holds, what)
    else:
        print("does not hold, and the machine is busy:", what, flush=True)


def comes(holds):
    """Does it hold in the end, on a machine that others use?"""
    until = time.monotonic() + daemons.PATIENCE
    while not holds():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def verdict():
    sys.exit(1 if check.failures else 0)


def remove_folder(folder):
    """With what is mounted in it, and what processes that end are still writing there. Returns why it is still there, or None."""
    why, until = None, time.monotonic() + REMOVAL
    while os.path.lexists(folder) and time.monotonic() < until:
        with open("/proc/self/mounts") as file:
            places = [line.split()[1] for line in file]
        for place in reversed(places):
            if place.startswith(f"{folder}/"):
                subprocess.run(["umount", "-l", place])
        try:
            shutil.rmtree(folder)
        except OSError as failed:
            why = failed
            time.sleep(0.05)
    return why if os.path.lexists(folder) else None


class Target:
    """A tccld for each node n1, n2, ... and a munged, in a folder of their own, with records in the store of n1.
    conf: lines of tccl.conf, section [tccl]; records: steps, as the store has them (see record()).
    user: whom root's tccld becomes; by default TCCL_TCCLD_USER of the environment, or bin; None: it stays root.
    undo: what puts back what the attack has done to this machine, before the daemons end."""

    def __init__(self, nodes=1, conf=(), records=(), model="amd-4gpu", user=os.environ.get("TCCL_TCCLD_USER", "bin")):
        if os.getuid() != 0:
            skip("needs root: the attacks are those of another user")
        if not shutil.which("munged"):
            skip("no munged")
        signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
        self.undo, self.pids = contextlib.ExitStack(), []
        with daemons.uninterrupted():
            self.folder = tempfile.mkdtemp(prefix="tccl-hostile-")
            atexit.register(self.remove)  # where the test ends before it is entered
        os.chmod(self.folder, 0o755)
        self.nodes = [daemons.parse_node(model)] * nodes
        self.conf = list(conf)
        self.user = user
        self.put(records)

    def put(self, records):
        """Records into the store of n1, before tccld starts."""
        if not records:
            return
        os.makedirs(f"{self.folder}/n1/state")
        made = subprocess.run([f"{daemons.BUILD}/testsuite/unit/put-records", f"{self.folder}/n1/state/records.db"],
                              input="".join(json.dumps(each) + "\n" for each in records), text=True)
        if made.returncode:
            daemons.die("the records can't be put into a store")

    def __enter__(self):
        try:
            daemons.start_munged(self.folder)
            daemons.start_nodes(self.folder, self.nodes, self.conf, self.user)
        except BaseException:
            self.__exit__()
            raise
        self.munged, *self.tcclds = daemons.children[:1] + daemons.children[-len(self.nodes):]
        return self

    def __exit__(self, kind=None, *_):
        with daemons.uninterrupted():
            self.end(kind)

    def end(self, kind):
        self.undo.close()
        if any(child.poll() is not None for child in daemons.children):
            check(False, "all daemons still run")
        end_forked(self.pids)
        daemons.end_all()
        if check.failures or kind not in (None, SystemExit):
            for i in range(len(self.nodes)):
                with contextlib.suppress(FileNotFoundError), open(f"{self.folder}/n{i + 1}/log") as file:
                    print("".join(file.readlines()[-30:]))
        self.remove_shared()
        self.remove()

    def remove(self):
        """A test that leaves its folder has failed, whatever else it has found."""
        self.undo.close()
        why = remove_folder(self.folder)
        atexit.unregister(self.remove)
        if why:
            print(f"FAILED: {self.folder} can't be removed: {why}", flush=True)
            os._exit(1)

    def remove_shared(self):
        """Files of steps that nobody has ended."""
        for path in glob.glob(f"{self.folder}/n*/run/*-*/plan"):
            for shared in glob.glob(f"/dev/shm/tccl-*-{os.path.dirname(path)[-16:]}*"):
                shutil.rmtree(shared) if os.path.isdir(shared) else os.unlink(shared)

    def stop(self, node=1, number=signal.SIGKILL):
        """Ends a tccld."""
        child = self.tcclds[node - 1]
        child.send_signal(number)
        child.wait(daemons.PATIENCE)
        daemons.children.remove(child)

    def start_again(self, node=1):
        """Starts it again."""
        self.tcclds[node - 1] = child = daemons.spawn(
            [daemons.TCCLD, "--config", f"{self.folder}/tccl.conf", "--node", f"n{node}"],
            f"{self.folder}/n{node}/log")
        if not daemons.wait_for_socket(f"{self.folder}/n{node}/tccld.sock", child):
            daemons.die("tccld does not start again")
        daemons.check_user(child, self.user)

    def ask(self, peer, message):
        """A question over the unix socket, and its answer."""
        daemons.send(peer, message)
        return daemons.receive(peer)

    def records(self, **given):
        """All records, as root sees them."""
        found, given = [], {"end": 1 << 40, **given}
        with self.unix() as peer:
            while given:
                answer = self.ask(peer, {"type": "query", "filter": given})
                if answer["type"] != "records":
                    daemons.die(f"no records: {answer}")
                found += answer["records"]
                given = answer["next"]
        return found

    def tell(self, peer, record, node=1):
        """A RECORD of another node, as root, over TCP. peer: a connection, or what makes one, once munge has made the credential.
        Returns whether it was answered ok; None: tccld hung up."""
        told = frame(self.credential({"type": "record", "records": [record]}, node))
        try:
            peer = peer() if callable(peer) else peer
            peer.sendall(told)
            answer = daemons.receive_bytes(peer)
        except OSError:
            return None
        return answer and json.loads(Munge.decode(f"{self.folder}/munge/socket", answer))["type"] == "ok"

    # ---- what is said to it ----

    def unix(self, node=1):
        return daemons.connect(self.folder, node - 1)

    def port(self, node=1):
        with open(f"{self.folder}/tccl.conf") as file:
            return next(int(line.rsplit(":", 1)[1]) for line in file if line.startswith(f"n{node}="))

    def tcp(self, node=1, source=None):
        """source: an address of our own, 127.0.0.2 say: who asks from there."""
        return socket.create_connection(("127.0.0.1", self.port(node)), daemons.PATIENCE, (source, 0) if source else None)

    def envelope(self, message, node=1):
        return {"v": 1, **message, "to": f"n{node}", "from": "login", "epoch": 0, "nonce": os.urandom(16).hex()}

    def credential(self, message, node=1):
        """A message in a credential of the user who asks for it, as it goes over TCP."""
        return Munge.encode(f"{self.folder}/munge/socket", json.dumps(self.envelope(message, node)).encode())

    def join(self, key_of=None):
        """A step of this one node: JOIN, LEAVE. Returns seconds until the plan was there."""
        key = {"cluster": "rig", "job": int.from_bytes(os.urandom(3), "big") + 1, "het_job": 0, "het_offset": 0, "step": 0,
               "restart": 0, "run": 0, **(key_of or {})}
        start = time.monotonic()
        daemons.join_all(self.folder, self.nodes[:1], key)
        took = time.monotonic() - start
        daemons.leave_all(self.folder, self.nodes[:1], key)
        return took

    def pair(self, job, nodes=(1, 2)):
        """A step over nodes, which waits as long as those of sites do. Returns why it has no ring, or an empty text."""
        key = {"cluster": "rig", "job": job, "het_job": 0, "het_offset": 0, "step": 0, "restart": 0, "run": 0}
        names, peers = ",".join(f"n{node}" for node in nodes), []
        for i, node in enumerate(nodes):
            peers.append(self.unix(node))
            daemons.send(peers[-1], {"type": "join", "key": key, "node": i, "nodes": names, "gres": self.nodes[node - 1][1],
                                     "mode": "on", "uid": 0, "gid": 0, "timeout_ms": 30000})
        plans = [daemons.receive(peer) for peer in peers]
        for peer in peers:
            daemons.send(peer, {"type": "leave", "key": key})
            daemons.receive(peer)
            peer.close()
        return next((plan["reason"] for plan in plans if plan["state"] != "planned"), "")

    def await_log(self, text, node=1):
        """Until a line of the log has the text."""
        for _ in range(daemons.PATIENCE * 20):
            with open(f"{self.folder}/n{node}/log", errors="replace") as file:
                if text in file.read():
                    return
            time.sleep(0.05)
        check(False, f"tccld says: {text}")

    # ---- what it needs ----

    def memory(self, node=1, which="VmRSS"):
        """Bytes. VmHWM: the most since forget_peak()."""
        with open(f"/proc/{self.tcclds[node - 1].pid}/status") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith(which + ":"))

    def forget_peak(self, node=1):
        with open(f"/proc/{self.tcclds[node - 1].pid}/clear_refs", "w") as file:
            file.write("5")

    def fork(self, function, *arguments, uid=NOBODY):
        """Runs the function in a process of that user. Ends with the target, or by wait(). A program, for run, is copied: the
        user may not be able to enter the folder of the checkout."""
        if function == self.run:
            copy = os.path.join(self.folder, os.path.basename(arguments[0]))
            if not os.path.exists(copy):
                shutil.copy(arguments[0], copy)
                os.chmod(copy, 0o755)
            arguments = (copy, *arguments[1:])
        with daemons.uninterrupted():
            pid = os.fork()
            if pid == 0:
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
            else:
                self.pids.append(pid)
        if pid == 0:
            status = 1
            try:
                os.setgroups([])
                os.setresgid(uid, uid, uid)
                os.setresuid(uid, uid, uid)
                function(*arguments)
                status = 0
            except Exception:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                os._exit(status)
        return pid

    def start(self, function, *arguments, uid=NOBODY):
        """As fork(); what the function prints to target.told can be read from the file that comes with the pid."""
        reading, writing = os.pipe()
        self.told = os.fdopen(writing, "w")
        pid = self.fork(function, *arguments, uid=uid)
        self.told.close()
        return pid, os.fdopen(reading)

    @staticmethod
    def run(*command):
        """For fork(): a program."""
        os.execvp(command[0], command)

    def wait(self, pid):
        """The exit status of a process of fork()."""
        self.pids.remove(pid)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def end_forked(pids):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    pids.clear()


def record(job, uid=NOBODY, **members):
    """A step as the store has it."""
    return {"cluster": "rig", "job": job, "het_job": 0, "het_offset": 0, "step": 0, "restart": 0, "run": 0,
            "start": int(time.time()) - 100000 + job, "user": pwd.getpwuid(uid).pw_name, "uid": uid, "account": "",
            "partition": "all", "job_name": f"job {job}", "n_nodes": 1, "nodes": "n1", "gpus": 4,
            "mode": "on", "state": "failed", "reason": "no profile", "reason_class": "no profile", "reporter": 0, **members}


class Munge:
    """libmunge; a process that runs munge for each credential would be most of the work."""
    library = None

    @classmethod
    def encode(cls, path, data, reader=0, packed=False):
        """packed: by zlib, which anybody may ask munge for."""
        if not cls.library:
            cls.library = ctypes.CDLL("libmunge.so.2")
            cls.library.munge_ctx_create.restype = ctypes.c_void_p
            cls.library.munge_strerror.restype = ctypes.c_char_p
        library, made = cls.library, ctypes.c_void_p()
        context = ctypes.c_void_p(library.munge_ctx_create())
        library.munge_ctx_set(context, 8, path.encode())  # MUNGE_OPT_SOCKET
        library.munge_ctx_set(context, 9, ctypes.c_int(reader))  # MUNGE_OPT_UID_RESTRICTION
        if packed:
            library.munge_ctx_set(context, 2, ctypes.c_int(3))  # MUNGE_OPT_ZIP_TYPE, MUNGE_ZIP_ZLIB
        code = library.munge_encode(ctypes.byref(made), context, data, len(data))
        library.munge_ctx_destroy(context)
        if code:
            raise OSError(library.munge_strerror(code).decode())
        text = ctypes.string_at(made)
        ctypes.CDLL(None).free(made)
        return text


    @classmethod
    def decode(cls, path, credential):
        cls.encode(path, b"")
        library, data, size = cls.library, ctypes.c_void_p(), ctypes.c_int()
        context = ctypes.c_void_p(library.munge_ctx_create())
        library.munge_ctx_set(context, 8, path.encode())
        code = library.munge_decode(ctypes.c_char_p(credential), context, ctypes.byref(data), ctypes.byref(size), None, None)
        library.munge_ctx_destroy(context)
        if code:
            raise OSError(library.munge_strerror(code).decode())
        text = ctypes.string_at(data, size.value)
        ctypes.CDLL(None).free(data)
        return text


def frame(data):
    data = data if isinstance(data, bytes) else json.dumps(data).encode()
    return struct.pack(">I", len(data)) + data
