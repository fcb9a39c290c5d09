"""schedule.py: runs tests in lanes beside each other, as far as there are cores for them; those that measure run alone,
after the others; what fails, or was skipped because the machine was too busy, is run once more, alone, since others can
keep a test from what it waits for."""
import heapq
import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass

from catalogue import LOGS
from cluster import Cluster

KILL_AFTER = 120  # seconds between TERM and KILL: a test that has a cluster of its own ends it
SKIP = 77


def quiet(test):
    """libpciaccess, which hwloc's plugin loads and unloads, leaks; LeakSanitizer can't be told whose that is."""
    return {'HWLOC_PLUGINS_BLACKLIST': 'hwloc_pci'} if test.name.startswith('unit/sanitize/') else {}


@dataclass
class Result:
    test: object
    status: int
    seconds: float = 0
    cpu: float = 0
    second: bool = False
    reason: str = ''

    @property
    def word(self):
        return {0: 'ok', SKIP: 'skip'}.get(self.status, 'FAIL')

    @property
    def was_kept(self):
        """Others, such as the tests beside it, may have kept it from what it waits for."""
        return self.test.again and (self.word == 'FAIL' or self.word == 'skip' and 'busy' in self.reason)


class Gate:
    """So many cores. Who wants more waits until all before him have theirs: nobody is passed for ever."""

    def __init__(self, cores):
        self.cores, self.used = cores, 0
        self.queue, self.number = [], itertools.count()
        self.changed = threading.Condition()

    @contextmanager
    def hold(self, weight):
        weight = min(weight, self.cores)
        with self.changed:
            ticket = (weight <= 1, next(self.number))  # builds first: others wait for them; then in turn
            heapq.heappush(self.queue, ticket)
            self.changed.wait_for(lambda: self.queue[0] == ticket and self.used + weight <= self.cores)
            heapq.heappop(self.queue)
            self.used += weight
            self.changed.notify_all()
        try:
            yield
        finally:
            with self.changed:
                self.used -= weight
                self.changed.notify_all()


def log_of(name):
    return os.path.join(LOGS, name.replace('/', '-') + '.log')


def last_line(path):
    with open(path, encoding='utf-8', errors='replace') as file:
        lines = file.read().strip().splitlines()
    return lines[-1] if lines else ''


class Runner:
    def __init__(self, cores, marker, report):
        self.gate = Gate(cores + 1)
        self.marker, self.report = marker, report
        self.results, self.running = {}, set()
        self.finished = threading.Condition()
        self.stopped = False

    # ---- one test ----

    def execute(self, test, env):
        """Its status, and its CPU seconds with those of all processes that it waited for."""
        folder = tempfile.mkdtemp(prefix='', dir=self.marker['TMPDIR'])
        os.chmod(folder, 0o1777)
        with open(log_of(test.name), 'wb') as log:
            process = subprocess.Popen(test.command, cwd=test.folder, stdin=subprocess.DEVNULL, stdout=log,
                                       stderr=log, start_new_session=True,
                                       env={**os.environ, **self.marker, **quiet(test), **test.env, **env, 'TMPDIR': folder})
        self.running.add(process.pid)
        late = threading.Event()
        timers = [threading.Timer(test.timeout, self.end, (process.pid, signal.SIGTERM, late)),
                  threading.Timer(test.timeout + KILL_AFTER, self.end, (process.pid, signal.SIGKILL, late))]
        for timer in timers:
            timer.start()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = status = os.waitstatus_to_exitcode(status)
        self.running.discard(process.pid)
        for timer in timers:
            timer.cancel()
        if late.is_set():
            with open(log_of(test.name), 'a', encoding='utf-8') as log:
                log.write(f'ended: it took longer than {test.timeout} s\n')
            status = 1
        self.tidy(test, folder, status in (0, SKIP))
        return status, usage.ru_utime + usage.ru_stime

    @staticmethod
    def tidy(test, folder, passed):
        """TMPDIR of a test. What one has left that did not fail is for check/leftovers, by its name; one that failed may not have
        come to it, and is known to have failed."""
        left = sorted(os.listdir(folder))
        if left and passed:
            os.rename(folder, os.path.join(os.path.dirname(folder), test.name.replace('/', '-')))
            return
        if left:
            with open(log_of(test.name), 'a', encoding='utf-8') as log:
                log.write(f'removed, since it failed: {" ".join(left)}\n')
        shutil.rmtree(folder, ignore_errors=True)

    @staticmethod
    def end(pid, number, late):
        late.set()
        try:
            os.killpg(pid, number)
        except ProcessLookupError:
            pass

    def attempt(self, test, cluster, second=False):
        start = time.monotonic()
        status, cpu, env = 1, 0, {}
        if cluster and not cluster.start():
            with open(cluster.start_log, 'rb') as source, open(log_of(test.name), 'wb') as target:
                target.write(source.read())
        else:
            if cluster:
                env = {'TCCL_MINICLUSTER': cluster.folder}
            status, cpu = self.execute(test, env)
        result = Result(test, status, time.monotonic() - start, cpu, second)
        if status == SKIP:
            result.reason = last_line(log_of(test.name))
        return result

    def record(self, result):
        with self.finished:
            self.results[result.test.name] = result
            self.finished.notify_all()
        self.report(result)

    # ---- what has to be there before ----

    def wait_for(self, test, planned):
        """Why the test can't run, or None."""
        for name in test.needs:
            if name in planned:
                with self.finished:
                    self.finished.wait_for(lambda: name in self.results or self.stopped)
                if self.stopped or self.results[name].word != 'ok':
                    return f'{name} did not pass'
        return None

    # ---- lanes ----

    def run_lane(self, tests, planned, failed):
        """One test after the other; those of a cluster share one, until a test fails in it."""
        clusters = {}
        for test in iter(tests):
            if self.stopped:
                break
            reason = self.wait_for(test, planned)
            if reason:
                self.record(Result(test, SKIP, reason=reason))
                continue
            cluster = None
            if test.cluster in Cluster.KINDS:
                cluster = clusters.setdefault(test.cluster, Cluster(test.cluster, self.marker))
            with self.gate.hold(test.weight):
                if self.stopped:
                    break
                result = self.attempt(test, cluster)
            if result.was_kept and not self.stopped:
                failed.append(result)
            else:
                self.record(result)
            if result.word == 'FAIL' and cluster:
                self.end_cluster(clusters.pop(test.cluster))
        for cluster in clusters.values():
            self.end_cluster(cluster)

    def end_cluster(self, cluster):
        for result in cluster.end(Result):
            self.record(result)

    def run(self, lanes, alone):
        """lanes: lists of tests that run beside each other; alone: those that run when all others have ended."""
        planned = {test.name for lane in lanes for test in lane} | {test.name for test in alone}
        failed = []
        threads = []
        for queue in lanes:
            tests = Queue(queue)
            for _ in range(queue.width):
                threads.append(threading.Thread(target=self.run_lane, args=(tests, planned, failed)))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.run_lane(alone, planned, failed)
        for first in failed:
            self.try_again(first, planned)

    def try_again(self, first, planned):
        test, log = first.test, log_of(first.test.name)
        if self.stopped:
            return
        os.replace(log, log.removesuffix('.log') + '.first.log')
        self.report(first, again=True)
        cluster = Cluster(test.cluster, self.marker) if test.cluster in Cluster.KINDS else None
        self.record(self.attempt(test, cluster, second=True))
        if cluster:
            self.end_cluster(cluster)

    def stop(self):
        self.stopped = True
        for pid in list(self.running):
            self.end(pid, signal.SIGTERM, threading.Event())
        with self.finished:
            self.finished.notify_all()


class Lane(list):
    """Tests of which `width` run at the same time."""

    def __init__(self, tests, width=1):
        super().__init__(tests)
        self.width = width


class Queue:
    """Hands each test to one thread."""

    def __init__(self, tests):
        self.tests, self.lock = list(tests), threading.Lock()

    def __iter__(self):
        return self

    def __next__(self):
        with self.lock:
            if not self.tests:
                raise StopIteration
            return self.tests.pop(0)
