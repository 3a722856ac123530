"""Inside the sandbox: imports torch once, then forks a worker for each submission.

    zygote                trusted; takes orders from the grader, never runs student code
      supervisor          trusted; one for each worker: makes its namespaces, kills it, reports how it ended
        worker            untrusted; process 1 of its own namespaces, without capabilities, under limits

The supervisor holds one end of a "leash", a socket whose other end the grader holds: when the grader closes it, or
dies, the worker is killed.
"""

import contextlib
import ctypes
import gc
import importlib
import json
import os
import resource
import select
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from functools import partial
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(1, os.path.join(os.path.dirname(sys.path[0]), "wire"))

gc.disable()  # until all is imported: looking for garbage among what stays takes a sixth of that time

import protocol  # noqa: E402
import worker  # noqa: E402
from protocol import torch  # noqa: E402

CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWUSER = 0x20000, 0x8000000, 0x10000000
CLONE_NEWPID, CLONE_NEWNET = 0x20000000, 0x40000000
CLONE_THREAD = 0x10000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
PR_SET_PDEATHSIG, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 1, 24, 38
NOBODY = 65534
MANY = 2  # workers, from which on what torch imports late is imported before they are forked

# What a worker has no use for. A process of its own, above all: limits are counted for each process.
REFUSED = """
    fork vfork execve execveat ptrace process_vm_readv process_vm_writev kcmp pidfd_open pidfd_getfd
    pidfd_send_signal mount umount2 pivot_root chroot unshare setns move_mount open_tree fsopen fsconfig fsmount
    fspick mount_setattr open_by_handle_at name_to_handle_at socket bpf perf_event_open userfaultfd keyctl
    add_key request_key io_uring_setup io_uring_enter io_uring_register memfd_create memfd_secret shmget shmat
    msgget semget mq_open init_module finit_module delete_module kexec_load kexec_file_load reboot swapon swapoff
    quotactl acct syslog settimeofday clock_settime clock_adjtime adjtimex iopl ioperm modify_ldt personality
""".split()  # noqa: SIM905
# What the kernel counts for each account, or for the whole machine, and what a file lends to all who have it open: with
# these a worker would reach the grader, other workers and other users through its namespaces. docs/engine.md says why.
SHARED = """
    timer_create rt_sigqueueinfo rt_tgsigqueueinfo inotify_init inotify_init1 inotify_add_watch fanotify_init
    fanotify_mark epoll_create epoll_create1 io_setup mlock mlock2 mlockall flock socketpair connect bind listen accept
    accept4 sendmsg sendmmsg sync syncfs mincore cachestat membarrier vmsplice setpriority ioprio_set
    sched_setscheduler sched_setparam sched_setattr fadvise64 readahead
""".split()  # noqa: SIM905
# Calls from this number on, the same on all machines, are newer than what a worker needs, and the C library does
# without them; one tells from where in the file system each part of the sandbox is mounted.
NEWEST = range(436, 600)
# By number, as the kernel has them: locks (6, 7 and, of an open file, 37, 38), who is told of a file (8, 10, 15, 1026),
# leases (1024), the size of a pipe (1031), hints that stay with a file (1036, 1038).
SHARED_BY_FCNTL = (6, 7, 8, 10, 15, 37, 38, 1024, 1026, 1031, 1036, 1038)


def main() -> None:
    """Serve orders: each comes with two sockets, the worker's and its leash."""
    control = socket.socket(fileno=int(sys.argv[1]))
    settings = json.loads(sys.argv[2])
    if torch is not None:
        torch.set_num_threads(1)
        torch.zeros(2, 3).mean(0)  # torch looks at /proc/cpuinfo once, which workers do not see
    if settings["sandboxed"]:
        with open("/proc/self/oom_score_adj", "w") as score:
            score.write("1000")  # when memory runs out, a worker is to go and not the grader
    _preload(settings["preload"])
    refuse = _build_filter() if settings["sandboxed"] else None
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for supervisors
    gc.enable()
    protocol.send(control, protocol.versions())
    workers = 0
    while True:
        order, fds, _, _ = socket.recv_fds(control, 1, 2)
        if not order:
            return
        workers += 1
        if workers == MANY:
            _preload(settings["preload_for_many"])
        if os.fork() == 0:
            control.close()
            _run_and_exit(partial(_supervise, fds[0], fds[1], settings, refuse))
        for fd in fds:
            os.close(fd)


def _preload(modules: list[str]) -> None:
    for module in modules:
        with contextlib.suppress(ModuleNotFoundError):  # a course may do without
            importlib.import_module(module)
    gc.collect()
    gc.freeze()  # so that workers share the memory instead of copying it at their first collection


def _run_and_exit(work: Callable[[], object]) -> None:
    # Whatever happens in a forked process, it must not go on as its parent.
    try:
        work()
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(1)


def _supervise(connection: int, leash: int, settings: dict, refuse: Any) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _die_with_parent()
    processes = None
    if settings["sandboxed"]:
        processes = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY)
        _own_namespaces()
    pid = os.fork()
    if pid == 0:
        _run_and_exit(lambda: _become_worker(connection, leash, settings, refuse))
    os.close(connection)
    reason = None
    while True:
        readable, _, _ = select.select([leash], [], [], 0.02)
        if readable:
            os.kill(pid, signal.SIGKILL)  # the grader let go
        elif processes is not None and _threads(processes, pid) > settings["threads"]:
            reason = "threads"
            os.kill(pid, signal.SIGKILL)
        ended, status, usage = os.wait4(pid, 0 if readable or reason else os.WNOHANG)
        if ended:
            break
    code = os.waitstatus_to_exitcode(status)
    cpu = usage.ru_utime + usage.ru_stime
    if (
        reason is None and code == -signal.SIGKILL and cpu > settings["cpu_seconds"] - 0.5
    ):  # the two clocks differ a little
        reason = "cpu"
    with contextlib.suppress(OSError):  # the grader may be gone
        os.write(leash, json.dumps({"code": code, "reason": reason}).encode())
    os._exit(0)


def _own_namespaces() -> None:
    uid, gid = os.getuid(), os.getgid()
    # Where the system lets programs in a sandbox make no namespaces, this fails, and the grader tells why.
    _libc("unshare", CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWNET)
    for file, text in (("setgroups", "deny"), ("uid_map", f"{NOBODY} {uid} 1"), ("gid_map", f"{NOBODY} {gid} 1")):
        with open(f"/proc/self/{file}", "w") as mapping:
            mapping.write(text)


def _threads(processes: int, pid: int) -> int:
    try:
        fd = os.open(f"{pid}/stat", os.O_RDONLY, dir_fd=processes)
        try:
            return int(os.read(fd, 4096).rpartition(b")")[2].split()[17])
        finally:
            os.close(fd)
    except OSError:
        return 0


def _become_worker(connection: int, leash: int, settings: dict, refuse: Any) -> None:
    _die_with_parent()
    os.write(leash, b"w")  # beside which the system tells the grader what this process is called on its side
    os.setsid()  # signals to one's process group reach beyond one's namespace
    os.dup2(connection, 3)
    os.closerange(4, 1 << 16)
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.close(null)
    _limit(settings)
    if settings["sandboxed"]:
        flags = MS_NOSUID | MS_NODEV | MS_NOEXEC
        _libc("mount", b"tmpfs", b"/tmp", b"tmpfs", flags, f"size={settings['file_mb']}m,nr_inodes=4096".encode())
        _libc("mount", b"tmpfs", b"/proc", b"tmpfs", flags | MS_RDONLY, b"size=4k")
        os.chdir("/tmp")
        _drop_privileges()
        refuse.load()
    worker.serve(socket.socket(fileno=3), settings)
    os._exit(0)


def _limit(settings: dict) -> None:
    mega = 1 << 20
    limits = [
        (resource.RLIMIT_CPU, settings["cpu_seconds"]),
        (resource.RLIMIT_FSIZE, settings["file_mb"] * mega),
        (resource.RLIMIT_NOFILE, settings["open_files"]),
        (resource.RLIMIT_CORE, 0),
    ]
    if sys.platform == "linux":
        limits += [(resource.RLIMIT_MSGQUEUE, 0), (resource.RLIMIT_MEMLOCK, 0), (resource.RLIMIT_SIGPENDING, 64)]
        with open("/proc/self/statm") as sizes:
            used = int(sizes.read().split()[0]) * resource.getpagesize()
        limits.append((resource.RLIMIT_AS, used + settings["memory_mb"] * mega))
    for limit, value in limits:
        resource.setrlimit(limit, (value, value))


def _drop_privileges() -> None:
    libc = ctypes.CDLL(None)
    for capability in range(64):
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)  # fails past the last that the kernel knows
    version_3_of_this_process = (ctypes.c_uint32 * 2)(0x20080522, 0)
    _libc("capset", version_3_of_this_process, (ctypes.c_uint32 * 6)())
    _libc("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def _die_with_parent() -> None:
    if sys.platform == "linux":
        _libc("prctl", PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _libc(function: str, *args: Any) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, function)(*args) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{function}: {os.strerror(number)}")


def _build_filter() -> Any:
    import errno

    import pyseccomp

    refuse = pyseccomp.SyscallFilter(pyseccomp.ALLOW)
    for name in (*REFUSED, *SHARED):
        absent = (ValueError,) if name == "cachestat" else ()  # a library may be older than a call
        with contextlib.suppress(*absent):
            refuse.add_rule(pyseccomp.ERRNO(errno.EPERM), name)
    for command in SHARED_BY_FCNTL:  # of which the kernel reads 32 bits
        of_this_kind = pyseccomp.Arg(1, pyseccomp.MASKED_EQ, 0xFFFFFFFF, command)
        refuse.add_rule(pyseccomp.ERRNO(errno.EPERM), "fcntl", of_this_kind)
    for call in ("clone3", *NEWEST):
        refuse.add_rule(pyseccomp.ERRNO(errno.ENOSYS), call)  # so that the C library falls back on older ones
    no_thread = pyseccomp.Arg(0, pyseccomp.MASKED_EQ, CLONE_THREAD, 0)
    refuse.add_rule(pyseccomp.ERRNO(errno.EPERM), "clone", no_thread)
    return refuse


if __name__ == "__main__":
    main()
