"""confine.py: a program under the restrictions of a systemd unit, where no systemd runs: capabilities, system calls, families of
addresses, memory, /proc, and a file system of which only some folders can be written. As a command: confine.py UNIT FOLDER[:FOLDER...]
COMMAND. x86-64 only. Settings that only systemd itself can bring about (PrivateTmp= and the like) are left out."""
import ctypes
import os
import re
import struct
import subprocess
import sys

LIBC = ctypes.CDLL(None, use_errno=True)
HEADER = "/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "/usr/include/asm/unistd_64.h"
FAMILIES = {"AF_UNIX": 1, "AF_INET": 2, "AF_INET6": 10, "AF_NETLINK": 16}
CAPABILITIES = {name: i for i, name in enumerate(
    "CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE NET_BROADCAST NET_ADMIN "
    "NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME "
    "SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ "
    "PERFMON BPF CHECKPOINT_RESTORE".split())}
LOAD, EQUAL, AND, RETURN = 0x20, 0x15, 0x54, 0x06  # of BPF
ALLOW, ERRNO, KILL = 0x7fff0000, 0x00050000, 0x80000000
EPERM, EAFNOSUPPORT = 1, 97


def read_unit(path):
    """Settings of [Service]: name to the list of its values."""
    found = {}
    with open(path) as file:
        for line in file:
            name, equals, value = line.strip().partition("=")
            if equals and not name.startswith("#"):
                found.setdefault(name, []).append(value)
    return found


def set_of(name):
    """The system calls of one of systemd's sets, @system-service say."""
    if not name.startswith("@"):
        return {name}
    told = subprocess.run(["systemd-analyze", "syscall-filter", "--no-pager", name], stdout=subprocess.PIPE, text=True, check=True).stdout
    return set().union(*(set_of(line.strip()) for line in told.splitlines()[1:] if line.strip() and not line.strip().startswith("#")))


def numbers():
    header = next(path for path in HEADER if os.path.exists(path))
    with open(header) as file:
        return {name: int(number) for name, number in re.findall(r"#define __NR_(\w+) (\d+)", file.read())}


def allowed_calls(unit, known):
    allowed = set()
    for i, line in enumerate(unit.get("SystemCallFilter", ())):
        names = set().union(*(set_of(name) for name in line.lstrip("~").split()))
        if i == 0 and line.startswith("~"):
            allowed = set(known)
        allowed = allowed - names if line.startswith("~") else allowed | names
    return allowed if unit.get("SystemCallFilter") else set(known)


def filter_of(unit):
    """A program of BPF: offsets of struct seccomp_data are 0 (number), 4 (architecture), 16 + 8 i (arguments)."""
    known = numbers()
    code = [(LOAD, 0, 0, 4), (EQUAL, 1, 0, 0xc000003e), (RETURN, 0, 0, KILL), (LOAD, 0, 0, 0)]
    families = [FAMILIES[name] for line in unit.get("RestrictAddressFamilies", ()) for name in line.split()]
    part = [(LOAD, 0, 0, 16)] + [step for each in families for step in ((EQUAL, 0, 1, each), (RETURN, 0, 0, ALLOW))]
    part.append((RETURN, 0, 0, ERRNO | EAFNOSUPPORT))
    if families:
        code += [(EQUAL, 0, len(part), known["socket"])] + part
    if unit.get("MemoryDenyWriteExecute") == ["yes"]:
        for call, bits in (("mmap", 6), ("mprotect", 4), ("pkey_mprotect", 4)):
            part = [(LOAD, 0, 0, 32), (AND, 0, 0, bits), (EQUAL, 0, 1, bits), (RETURN, 0, 0, ERRNO | EPERM), (LOAD, 0, 0, 0)]
            code += [(EQUAL, 0, len(part), known[call])] + part
    for name in sorted(allowed_calls(unit, known) & set(known)):
        code += [(EQUAL, 0, 1, known[name]), (RETURN, 0, 0, ALLOW)]
    code.append((RETURN, 0, 0, ERRNO | EPERM))
    return b"".join(struct.pack("HBBI", *step) for step in code), len(code)


def call(function, *arguments):
    if function(*arguments) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(arguments))


def mount(source, target, kind, flags, data=None):
    call(LIBC.mount, *(ctypes.c_char_p(each and each.encode()) for each in (source, target, kind)), ctypes.c_ulong(flags),
         ctypes.c_char_p(data and data.encode()))


def set_read_only(path, yes):
    """All that is mounted there, and below."""
    readonly, recursive = 1, 0x8000
    attributes = struct.pack("QQQQ", readonly if yes else 0, 0 if yes else readonly, 0, 0)
    call(LIBC.syscall, ctypes.c_long(442), ctypes.c_int(-100), ctypes.c_char_p(path.encode()), ctypes.c_uint(recursive), attributes,
         ctypes.c_size_t(len(attributes)))


def confine(unit, folders):
    """This process and those that it starts; only these folders can be written."""
    bind, recursive, slave = 4096, 16384, 1 << 19
    program, length = filter_of(unit)
    call(LIBC.unshare, 0x20000)
    mount(None, "/", None, recursive | slave)
    for folder in folders:
        mount(folder, folder, None, bind)
    if unit.get("ProtectSystem") == ["strict"]:
        set_read_only("/", True)
        for folder in (*folders, "/dev"):
            set_read_only(folder, False)
    options = [f"hidepid={value}" for value in unit.get("ProtectProc", ())] + [f"subset={value}" for value in unit.get("ProcSubset", ())]
    if options:
        mount("proc", "/proc", "proc", 0, ",".join(options))
    kept = {CAPABILITIES[name.removeprefix("CAP_")] for line in unit["CapabilityBoundingSet"] for name in line.split()}
    for each in set(CAPABILITIES.values()) - kept:
        LIBC.prctl(24, each, 0, 0, 0)  # PR_CAPBSET_DROP; the kernel may not know the newest
    call(LIBC.prctl, 38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
    memory = ctypes.create_string_buffer(program, len(program))
    description = struct.pack("HxxxxxxP", length, ctypes.addressof(memory))
    call(LIBC.prctl, 22, 2, ctypes.c_char_p(description), 0, 0)  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER


def main():
    confine(read_unit(sys.argv[1]), sys.argv[2].split(":"))
    os.execvp(sys.argv[3], sys.argv[3:])


if __name__ == "__main__":
    main()
