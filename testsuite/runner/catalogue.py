"""catalogue.py: which tests there are, and what each of them needs. A test tells its level in a comment:
"# level: quick" is for every run, "# level: all" for testsuite/run --all. Unit tests are for every run, but for those
that meson has in its suite "long"."""
import functools
import glob
import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), '..', '..'))
LOGS = os.path.join(ROOT, 'build', 'test-logs')
BUILDS = {
    'gcc': ('build', 'gcc', []),
    'sanitize': ('build-sanitize', 'gcc', ['-Db_sanitize=address,undefined']),
    'clang': ('build-clang', 'clang', []),
}
CLUSTERS = {
    'mixed': ['--nodes', '4', '--model', 'amd-4gpu', '--model', 'intel-4gpu'],
    'wide': ['--nodes', '32', '--model', 'amd-4gpu', '--model', 'intel-4gpu'],
}
SANITIZERS = {'ASAN_OPTIONS': 'halt_on_error=1:abort_on_error=1:print_summary=1',
              'UBSAN_OPTIONS': 'halt_on_error=1:print_stacktrace=1', 'MALLOC_PERTURB_': '165'}  # as meson test has it
UNIT_SLOWER = 5  # times meson's timeouts, on a machine that others use
E2E_SECONDS, NCCL_SECONDS, HOSTILE_SECONDS, PACKAGES_SECONDS, BUILD_SECONDS = 1200, 1500, 600, 3600, 3600


@dataclass
class Test:
    name: str
    command: list
    lane: str
    needs: list = field(default_factory=list)  # names of the tests that have to pass before
    env: dict = field(default_factory=dict)
    timeout: int = BUILD_SECONDS
    weight: float = 1  # cores that it keeps busy, about
    alone: bool = False  # it measures: nothing may run beside it
    again: bool = True  # may it be tried again? Others can keep a test from what it waits for
    cluster: str = None
    folder: str = ROOT


def tag(path, name):
    with open(path, encoding='utf-8') as file:
        match = re.search(rf'(?:^# |^ \* |^/\* |; ){name}: (\w+)', file.read(4000), re.M)
    return match[1] if match else None


def scripts(folder, pattern):
    return sorted(glob.glob(os.path.join(ROOT, 'testsuite', folder, pattern)))


# ---- builds and unit tests -------------------------------------------------------------------

def setup_command(build):
    folder, compiler, options = BUILDS[build]
    return (f'[ -e {folder}/build.ninja ] || CC={compiler} meson setup {folder} -Dwerror=true -Dwarning_level=2 '
            + ' '.join(options) + f'; grep -q -e -Werror {folder}/build.ninja || meson configure {folder} -Dwerror=true')


def build_test(build):
    folder = BUILDS[build][0]
    return Test(f'build/{build}', ['sh', '-c', f'{{ {setup_command(build)}; }} && exec ninja -C {folder}'], 'builds',
                weight=os.cpu_count(), again=False)


@functools.cache
def known_to_meson(build):
    folder = BUILDS[build][0]
    subprocess.run(['sh', '-c', setup_command(build)], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return json.loads(subprocess.run(['meson', 'introspect', '--tests', folder], cwd=ROOT, check=True,
                                     stdout=subprocess.PIPE).stdout)


def unit_tests(build, everything):
    for test in known_to_meson(build):
        if not everything and any(suite.endswith(':long') for suite in test['suite']):
            continue
        alone = not test['is_parallel']
        yield Test(f'unit/{build}/{test["name"]}', test['cmd'], f'unit-{build}', needs=[f'build/{build}'],
                   env={**test['env'], **SANITIZERS},
                   timeout=test['timeout'] * UNIT_SLOWER, alone=alone,
                   folder=os.path.join(ROOT, BUILDS[build][0]))


# ---- scripts ---------------------------------------------------------------------------------

def script_tests(kind, paths, everything, **more):
    for path in paths:
        if not everything and tag(path, 'level') != 'quick':
            continue
        name = os.path.basename(path).removesuffix('.sh').removeprefix('test-')
        yield Test(f'{kind}/{name}', ['bash', path], kind, env={'TCCL_BUILD': os.path.join(ROOT, 'build')}, **more)


def e2e_tests(everything):
    paths = [path for path in scripts('e2e', '*.sh') if tag(path, 'cluster')]
    for path, test in ((path, test) for path in paths for test in script_tests(
            'e2e', [path], everything, needs=['build/gcc'], timeout=E2E_SECONDS, weight=0.6)):
        test.cluster = tag(path, 'cluster')
        test.lane = f'e2e-{test.cluster}'
        yield test


def nccl_tests(everything):
    env = {'TCCL_BUILD': os.path.join(ROOT, 'build')}
    yield Test('nccl/get-nccl', ['testsuite/nccl/get-nccl'], 'nccl-build', weight=os.cpu_count())
    yield Test('nccl/rig', ['testsuite/nccl/rig'], 'nccl', needs=['nccl/get-nccl', 'build/gcc'], env=env)
    yield from script_tests('nccl', scripts('nccl', 'test-*.sh'), everything, needs=['nccl/rig'], timeout=NCCL_SECONDS)


def hostile_tests(everything):
    for path in scripts('hostile', '*.py'):
        level = tag(path, 'level')
        needs, env = ['build/gcc'], {'TCCL_BUILD': os.path.join(ROOT, 'build')}
        build = tag(path, 'build')
        if everything:
            env['TCCL_LAUNCHES'] = '3000'  # kept-records
        if build and everything:
            needs.append(f'build/{build}')
            env |= {'TCCL_TCCLD': os.path.join(ROOT, BUILDS[build][0], 'profiler', 'tccld'), **SANITIZERS}
        if level == 'quick' or level and everything:
            yield Test(f'hostile/{os.path.basename(path).removesuffix(".py")}', ['python3', '-B', path], 'hostile',
                       needs=needs, env=env, timeout=HOSTILE_SECONDS)


def checks(everything):
    def check(name, command, **more):
        return Test(f'check/{name}', command, 'checks', **{'again': False, **more})
    yield check('format', ['testsuite/checks', 'format'])
    yield check('format-planted', ['testsuite/test-check-dialect'])
    yield check('readme', ['testsuite/checks', 'readme'])
    yield check('scripts', ['testsuite/checks', 'scripts'])
    yield check('arrows', ['testsuite/check-arrows', '.', 'build'], needs=['build/gcc'])
    yield check('arrows-planted', ['testsuite/test-check-arrows'])
    yield check('runner', ['testsuite/test-runner'], again=True)  # it has processes to wait for
    yield check('install', ['testsuite/checks', 'install'], needs=['build/gcc'])
    if everything:
        yield check('plain', ['testsuite/checks', 'plain'], weight=os.cpu_count())


def all_tests(everything):
    """The tests of a run, in the order in which those of one lane run."""
    builds = [build for build in (BUILDS if everything else ['gcc']) if shutil.which(BUILDS[build][1])]
    for build in BUILDS if everything else []:
        if build not in builds:
            print(f'no {BUILDS[build][1]}: build/{build} and its unit tests are left out')
    tests = [build_test(build) for build in builds]
    tests += checks(everything)
    tests += nccl_tests(everything)
    for build in builds:
        tests += unit_tests(build, everything)
    tests += e2e_tests(everything)
    tests += hostile_tests(everything)
    tests += script_tests('packages', scripts('packages', 'test-*.sh'), everything, needs=['build/gcc'],
                          timeout=PACKAGES_SECONDS, weight=1)
    return tests
