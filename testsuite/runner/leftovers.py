"""leftovers.py: what a run has left behind, by names that only our programs give and by an environment variable that all
processes of a run inherit: what others do on the machine meanwhile does not count."""
import os
import re
import shutil
import tempfile

NAMES = re.compile(r'tccl|nccl|^slurm|^munge|^test-|^rig-')
FOLDERS = ['/dev/shm', '/tmp', '/var/tmp', '/run', os.path.expanduser('~/.cache'), os.path.expanduser('~')]
KEPT = 'tccl-test'  # ~/.cache/tccl-test
VARIABLE = 'TCCL_TEST_RUN'


def marker():
    """What all processes of the run have in their environment; TMPDIR: a folder that has to be empty in the end."""
    folder = tempfile.mkdtemp(prefix='tccl-test-run-')
    os.chmod(folder, 0o1777)
    return {VARIABLE: f'{os.getpid()}-{os.urandom(4).hex()}', 'TMPDIR': folder}


def of_folder(mark):
    """What is in it, and in those of tests."""
    folders = [mark['TMPDIR']] + [each.path for each in os.scandir(mark['TMPDIR']) if each.is_dir(follow_symlinks=False)]
    found = {os.path.join(folder, name) for folder in folders for name in os.listdir(folder)}
    shutil.rmtree(mark['TMPDIR'], ignore_errors=True)
    return found


def files():
    found = set()
    for folder in FOLDERS:
        try:
            names = os.listdir(folder)
        except FileNotFoundError:
            continue
        found.update(os.path.join(folder, name) for name in names if NAMES.search(name) and name != KEPT)
    return found


def processes(mark):
    """Those of the run that are not ourselves: pid and command."""
    wanted = b'%s=%s' % (VARIABLE.encode(), mark[VARIABLE].encode())
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open(f'/proc/{pid}/environ', 'rb') as file:
                ours = wanted in file.read().split(b'\0')
            with open(f'/proc/{pid}/cmdline', 'rb') as file:
                command = file.read().replace(b'\0', b' ').decode(errors='replace').strip()
        except OSError:
            continue
        if ours and int(pid) != os.getpid():
            yield pid, command


def used_by_others(paths):
    """Those that a process names in its command line or environment, or maps: it is none of ours."""
    texts = []
    for pid in filter(str.isdigit, os.listdir('/proc')):
        for name in ('cmdline', 'environ', 'maps'):
            try:
                with open(f'/proc/{pid}/{name}', 'rb') as file:
                    texts.append(file.read().decode(errors='replace'))
            except OSError:
                continue
    return {path for path in paths if any(path in text for text in texts)}


def mounts():
    with open('/proc/self/mounts', encoding='utf-8') as file:
        return {line.split()[1] for line in file if NAMES.search(line.split()[1])}
