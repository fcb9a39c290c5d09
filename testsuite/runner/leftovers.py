"""leftovers.py: what a run has left behind. Only what carries its mark counts: files in a /tmp and a /dev/shm of its own, and
processes with a variable in their environment. What others do on the machine meanwhile, or another run of these tests, does not."""
import ctypes
import os
import shutil
import subprocess
import tempfile

VARIABLE = 'TCCL_TEST_RUN'  # a folder in the machine's /tmp, which is the run's mark
CLONE_NEWNS = 0x20000
ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), '..', '..'))
PLACES = ('HOME', 'XDG_CACHE_HOME', 'TCCL_TEST_STORE', 'TCCL_SLURM_GIT')  # of what is not the run's


class Mark(dict):
    """What all processes of the run have in their environment. TMPDIR has to be empty in the end: it is a /tmp that only they see,
    where there may be mounts, and nothing that the tests need lies in the machine's /tmp."""

    def __init__(self):
        folder = tempfile.mkdtemp(prefix='tccl-test-run-', dir='/tmp')
        super().__init__({VARIABLE: folder, 'TMPDIR': folder})
        os.chmod(folder, 0o1777)
        self.private = ctypes.CDLL(None).unshare(CLONE_NEWNS) == 0 and mounted('--make-rprivate', '/') and \
            mounted('-t', 'tmpfs', '-o', 'mode=1777', 'tmpfs', '/dev/shm')
        needed = [ROOT] + [os.path.realpath(os.environ[name]) for name in PLACES if name in os.environ]
        if self.private and not any(path.startswith('/tmp/') for path in needed) and mounted('--bind', folder, '/tmp'):
            self['TMPDIR'] = '/tmp'
        self.mounts = self.all_mounts()

    def left(self):
        """What the run has left, one a line. Its processes are ended, its folders removed."""
        found = []
        for pid, command in self.processes():
            found.append(f'process {pid}: {command}')
            os.kill(int(pid), 9)
        found += [f'mount {path}' for path in sorted(self.all_mounts() - self.mounts)]
        folders = [self['TMPDIR']] + [each.path for each in os.scandir(self['TMPDIR']) if each.is_dir(follow_symlinks=False)]
        folders += ['/dev/shm'] if self.private else []
        found += sorted(f'file {os.path.join(folder, name)}' for folder in folders for name in os.listdir(folder))
        self.remove()
        return found

    def remove(self):
        if self['TMPDIR'] != self[VARIABLE]:
            subprocess.run(['umount', '--lazy', self['TMPDIR']], check=True)
            self['TMPDIR'] = self[VARIABLE]
        shutil.rmtree(self[VARIABLE], ignore_errors=True)

    def processes(self):
        """Those of the run that are not ourselves: pid and command."""
        wanted = f'{VARIABLE}={self[VARIABLE]}'.encode()
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

    def all_mounts(self):
        with open('/proc/self/mounts', encoding='utf-8') as file:
            return {point for point in (line.split()[1] for line in file) if self.private or point.startswith(self['TMPDIR'] + '/')}


def mounted(*arguments):
    return subprocess.run(['mount', *arguments], stderr=subprocess.DEVNULL).returncode == 0
