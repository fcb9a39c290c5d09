"""What testsuite/run runs: see there, and README.md."""
import argparse
import fnmatch
import glob
import os
import signal
import sys
import time

import leftovers
from catalogue import LOGS, ROOT, Test, all_tests
from cluster import Cluster
from schedule import Lane, Result, Runner, log_of

WIDTHS = {'e2e-mixed': 2, 'e2e-own': 3, 'nccl': 2}  # how many tests of a lane may run at the same time; units: the cores
SHOWN = 20
FAILED, AGAIN = 30, 12  # lines of the logs of those that failed, or failed at first


def parse():
    parser = argparse.ArgumentParser(prog='testsuite/run', add_help=False)
    parser.add_argument('--all', action='store_true')
    parser.add_argument('--list', action='store_true')
    parser.add_argument('--only', action='append', default=[])
    return parser.parse_args()


def is_wanted(name, patterns):
    return not patterns or any(pattern in name or fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def with_needs(tests, wanted):
    """The tests that are wanted, and those that these need."""
    by_name, names, todo = {test.name: test for test in tests}, set(), list(wanted)
    while todo:
        name = todo.pop()
        if name not in names and name in by_name:
            names.add(name)
            todo += by_name[name].needs
    return [test for test in tests if test.name in names]


# ---- what people see -------------------------------------------------------------------------

class Reporter:
    def __init__(self, wanted):
        self.wanted, self.done, self.results, self.again = wanted, 0, [], []

    def __call__(self, result, again=False):
        if again:
            first = log_of(result.test.name).removesuffix('.log') + '.first.log'
            print(f'again {result.test.name}: its first log is {os.path.relpath(first, ROOT)}', flush=True)
            self.show_log(first, AGAIN)
            return
        name = result.test.name
        counted = name in self.wanted or result.word == 'FAIL' or name not in self.wanted and not result.test.command
        if not counted:  # somebody else's need
            return
        self.results.append(result)
        note = f'  ({result.reason[:100]})' if result.reason else ''
        if result.second and result.word == 'ok':
            self.again.append(name)
            note = '  (at the second try)'
        self.done += name in self.wanted
        print(f'{result.word:4}  {name:36} {result.seconds:6.1f} s {result.cpu:6.1f} s CPU'
              f'  {self.done}/{len(self.wanted)}{note}', flush=True)
        if result.word == 'FAIL':
            self.show_log(log_of(name), FAILED)

    @staticmethod
    def show_log(path, lines):
        with open(path, encoding='utf-8', errors='replace') as log:
            for line in log.read().splitlines()[-lines:]:
                print('      |', line[:300])

    def costs(self):
        """The slowest tests on the screen, all of them in a file."""
        results = sorted((result for result in self.results if result.seconds), key=lambda each: -each.seconds)
        with open(os.path.join(LOGS, 'costs.tsv'), 'w', encoding='utf-8') as file:
            for result in results:
                file.write(f'{result.test.name}\t{result.seconds:.1f}\t{result.cpu:.1f}\n')
        print(f'the slowest of {len(results)} tests, in seconds and in CPU seconds (all: build/test-logs/costs.tsv):')
        for result in results[:SHOWN]:
            print(f'      {result.test.name:36} {result.seconds:8.1f} {result.cpu:8.1f}')

    def end(self, seconds):
        words = [result.word for result in self.results]
        if self.again:
            print('passed at their second try:', *self.again)
        self.costs()
        print(f'{int(seconds // 60)} min {int(seconds % 60)} s')
        skipped = f', {words.count("skip")} skipped' if 'skip' in words else ''
        print(f'{words.count("ok")} passed, {words.count("FAIL")} failed{skipped}')
        return 1 if 'FAIL' in words else 0


def announce(options, tests):
    kinds = {}
    for test in tests:
        kinds[test.name.split('/')[0]] = kinds.get(test.name.split('/')[0], 0) + 1
    names = {'build': 'builds', 'check': 'checks of files', 'unit': 'unit tests', 'e2e': 'on a real Slurm',
             'nccl': 'with a stock NCCL', 'hostile': 'attacks', 'packages': 'of packages'}
    print('tests:', ', '.join(f'{names[kind]} {count}' for kind, count in kinds.items()))
    if not options.only:
        print('everything, about 40 minutes on two cores that nobody else uses; logs: build/test-logs' if options.all else
              'about 10 minutes on two cores that nobody else uses; logs: build/test-logs; everything: testsuite/run --all',
              flush=True)


# ---- the run ---------------------------------------------------------------------------------

def lanes_of(tests):
    lanes = {}
    for test in tests:
        if not test.alone:
            lanes.setdefault(test.lane, []).append(test)
    return [Lane(lane, os.cpu_count() if name.startswith('unit-') else WIDTHS.get(name, 1))
            for name, lane in lanes.items()]


def check_leftovers(mark):
    """check/leftovers: its result."""
    start, left = time.monotonic(), mark.left()
    with open(log_of('check/leftovers'), 'w', encoding='utf-8') as log:
        log.write('\n'.join(left[-200:] + [f'{len(left)} things are left of this run'] * bool(left)) + '\n')
    return Result(Test('check/leftovers', [], 'checks'), 1 if left else 0, time.monotonic() - start)


def main():
    start = time.monotonic()
    options = parse()
    tests = all_tests(bool(options.all or options.only))
    names = [test.name for test in tests if is_wanted(test.name, options.only)]
    if options.list:
        print('\n'.join(names))
        return 0
    if not names:
        sys.exit(f'tccl: no test matches {", ".join(options.only)}; see testsuite/run --list')
    for path in glob.glob(os.path.join(LOGS, '*.first.log')):
        os.remove(path)
    tests = with_needs(tests, names)
    if any(test.name == 'build/sanitize' for test in tests):
        Cluster.sanitized = os.path.join(ROOT, 'build-sanitize', 'profiler', 'tccld')
        for test in tests:
            if test.cluster in Cluster.KINDS:
                test.needs = test.needs + ['build/sanitize']
    announce(options, [test for test in tests if test.name in names])
    mark = leftovers.Mark()
    reporter = Reporter(set(names))
    runner = Runner(os.cpu_count(), mark, reporter)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, lambda *_: runner.stop())
    runner.run(lanes_of(tests), [test for test in tests if test.alone])
    if runner.stopped:
        mark.remove()
        return 130
    reporter(check_leftovers(mark))
    return reporter.end(time.monotonic() - start)


os.makedirs(LOGS, exist_ok=True)
sys.exit(main())
