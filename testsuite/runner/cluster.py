"""cluster.py: a minicluster that several tests share, one after the other. Its tccld have sanitizers, where that build is
there; what these said is a result of its own."""
import os
import re
import shutil
import subprocess
import threading

from catalogue import CLUSTERS, LOGS, ROOT, Test

MINICLUSTER = os.path.join(ROOT, 'contrib', 'minicluster')
SAID = re.compile(r'ERROR: (?:Address|Leak)Sanitizer|runtime error:')


class Cluster:
    KINDS = CLUSTERS
    numbers, lock = {}, threading.Lock()
    sanitized = None  # tccld, once it is built

    def __init__(self, kind, marker):
        self.kind, self.environment, self.running = kind, {**os.environ, **marker}, False
        with self.lock:
            number = self.numbers[kind] = self.numbers.get(kind, 0) + 1
        self.name = f'{kind}-{number}'
        # Each run has a /tmp of its own, but processes and sockets are seen by all: no two clusters have one name.
        self.folder = os.path.join(marker['TMPDIR'], f'tccl-{self.name}-{os.getpid()}')
        self.start_log = os.path.join(LOGS, f'cluster-{self.name}.log')

    def call(self, *arguments):
        with open(self.start_log, 'ab') as log:
            return subprocess.run([MINICLUSTER, *arguments, '--dir', self.folder], cwd=ROOT, env=self.environment,
                                  stdin=subprocess.DEVNULL, stdout=log, stderr=log).returncode == 0

    def start(self):
        if not self.running:
            tccld = ['--tccld', self.sanitized] if self.sanitized else []
            self.with_sanitizers = bool(tccld)
            self.running = self.call('start', '--patient', *CLUSTERS[self.kind], *tccld)
        return self.running

    def end(self, result):
        """Keeps its logs; yields what the sanitizers said in them."""
        if not self.running:
            return
        self.call('stop', '--keep')
        kept = os.path.join(LOGS, f'cluster-{self.name}')
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(os.path.join(self.folder, 'log'), kept)
        self.call('stop')
        self.running = False
        if self.with_sanitizers:
            yield result(Test(f'e2e/sanitizers-{self.name}', [], 'e2e'), 1 if self.reports(kept) else 0)

    def reports(self, folder):
        lines = []
        for name in sorted(os.listdir(folder)):
            with open(os.path.join(folder, name), encoding='utf-8', errors='replace') as file:
                text = file.read().splitlines()
            for number, line in enumerate(text):
                if SAID.search(line):
                    lines += [f'{name}: {each}' for each in text[number:number + 13]]
        with open(os.path.join(LOGS, f'e2e-sanitizers-{self.name}.log'), 'w', encoding='utf-8') as log:
            log.write('\n'.join(lines) + '\n')
        return lines
