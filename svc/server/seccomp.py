"""The system calls that the app may not make, as a seccomp filter.

The kernel refuses them to the app parent and to everything forked from it, for good. The filter is
written here, since libseccomp cannot express "one of three values"; libseccomp supplies the numbers
of the system calls on this machine. Standard library only: it runs before anything else is imported.
"""

from __future__ import annotations

import ctypes
import errno
import struct
from collections.abc import Iterable

LIBRARY = "libseccomp.so.2"  # of Debian's package libseccomp2
PR_SET_SECCOMP, MODE_FILTER = 22, 2
# struct seccomp_data: nr, arch, instruction_pointer, args[6] of 64 bits, of which a uid is the lower half.
NUMBER, ARCHITECTURE, ARGUMENTS = 0, 4, 16
LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
ALLOW, KILL, ERROR = 0x7FFF0000, 0x80000000, 0x00050000
X32 = 0x40000000  # numbers of another ABI of x86-64, with which the names below have other numbers
# CLONE_NEWTIME, NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
NAMESPACES = 0x80 | 0x20000 | 0x2000000 | 0x4000000 | 0x8000000 | 0x10000000 | 0x20000000 | 0x40000000

IDENTITY = (
    "setuid", "setgid", "setreuid", "setregid", "setfsuid", "setfsgid", "setgroups",
    "setuid32", "setgid32", "setreuid32", "setregid32", "setresgid32", "setfsuid32", "setfsgid32",
    "setgroups32", "setresuid32",
)  # fmt: skip
OTHER_PROCESSES = (
    "ptrace", "pidfd_getfd", "process_vm_readv", "process_vm_writev", "process_madvise", "kcmp",
)  # fmt: skip
SURROUNDINGS = (
    "unshare", "setns", "chroot", "pivot_root", "mount", "umount", "umount2", "open_tree", "move_mount",
    "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr", "open_tree_attr", "name_to_handle_at",
    "open_by_handle_at", "fanotify_init", "quotactl", "quotactl_fd", "swapon", "swapoff", "acct",
)  # fmt: skip
PROGRAMS = ("execve", "execveat", "uselib", "personality")  # the app starts none
KERNEL = (
    "add_key", "request_key", "keyctl", "bpf", "io_uring_setup", "io_uring_enter", "io_uring_register",
    "perf_event_open", "userfaultfd", "kexec_load", "kexec_file_load", "init_module", "finit_module",
    "delete_module", "create_module", "reboot", "syslog", "vhangup", "iopl", "ioperm", "modify_ldt",
    "settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "sethostname", "setdomainname",
    "lookup_dcookie", "nfsservctl", "vm86", "vm86old", "_sysctl", "mbind", "migrate_pages", "move_pages",
)  # fmt: skip
DENIED = (*IDENTITY, *OTHER_PROCESSES, *SURROUNDINGS, *PROGRAMS, *KERNEL)


def restrict(uids: Iterable[int], gids: Iterable[int]) -> None:
    """Install the filter; from now on only these uids and gids can be taken, whatever the capabilities.

    The process must have no_new_privs. Raises OSError, also without libseccomp.
    """
    program = build(uids, gids)
    code = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(code))  # struct sock_fprog
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_SECCOMP, MODE_FILTER, header, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "the kernel refuses the seccomp filter")


def build(uids: Iterable[int], gids: Iterable[int]) -> bytes:
    """The filter as instructions of 8 bytes (struct sock_filter)."""
    library = ctypes.CDLL(LIBRARY)
    resolve = library.seccomp_syscall_resolve_name

    def number_of(name: str) -> int:
        return int(resolve(name.encode()))  # negative where this machine does not have it

    program = [
        _instruction(LOAD, ARCHITECTURE),
        _instruction(EQUAL, library.seccomp_arch_native() & 0xFFFFFFFF, 1, 0),
        _instruction(RETURN, KILL),
        _instruction(LOAD, NUMBER),
        _instruction(AT_LEAST, X32, 0, 1),
        _refusal(errno.ENOSYS),
    ]
    for denied in filter(lambda number: number >= 0, map(number_of, DENIED)):
        program += [_instruction(EQUAL, denied, 0, 1), _refusal(errno.EPERM)]
    # clone3 has its flags in memory, where no filter looks; the C library falls back to clone.
    program += [_instruction(EQUAL, number_of("clone3"), 0, 1), _refusal(errno.ENOSYS)]
    program += _block(number_of("clone"), [
        _instruction(LOAD, ARGUMENTS),
        _instruction(ANY_BIT, NAMESPACES, 0, 1),
        _refusal(errno.EPERM),
        _instruction(RETURN, ALLOW),
    ])  # fmt: skip
    for call, identities in (("setresuid", uids), ("setresgid", gids)):
        program += _block(number_of(call), [*_identities(identities), _refusal(errno.EPERM)])
    program.append(_instruction(RETURN, ALLOW))
    return b"".join(program)


def _identities(ids: Iterable[int]) -> list[bytes]:
    """Allow a call with three times the same of these uids or gids."""
    program = []
    for each in ids:
        for argument in range(3):
            end = 2 * (2 - argument) + 1  # behind the RETURN of this one
            program += [_instruction(LOAD, ARGUMENTS + 8 * argument), _instruction(EQUAL, each, 0, end)]
        program.append(_instruction(RETURN, ALLOW))
    return program


def _block(number: int, body: list[bytes]) -> list[bytes]:
    """A body that ends in a RETURN, for one system call; the accumulator has the number."""
    return [_instruction(EQUAL, number, 0, len(body)), *body]


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)


def _refusal(code: int) -> bytes:
    return _instruction(RETURN, ERROR | code)
