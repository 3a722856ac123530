"""What student code can do to the machine that grades it: look around, get out, take all there is, reach what
others share, end what it runs in.

Each attack proves that it fired, and beside it stands the same one where nothing holds it, in an ordinary process.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from graded import assert_fit_to_show, assert_unharmed, points, statuses
from unprotected import SECONDS, happens, plainly

from autograder.run import grade_notebook
from notebooks import find, source_notebook, submission

REPOSITORY = Path(__file__).parents[2]
WRONG = "\ndef double(x):\n    return x\n"

# Each prints what it finds. In the worker that is nothing; in an ordinary process of this machine it is something.
SPIES = {
    "files of the course": f"""
import os
for path in ("/home", "/root", "/var", "/opt", "/srv", "/mnt", "/media", "/etc/passwd", {str(REPOSITORY)!r}):
    if os.path.exists(path):
        print(path)
if os.path.exists("/engine"):
    print(*set(os.listdir("/engine")) - {{"isolation", "wire"}}, sep="\\n", end="")
""",
    "the process table": """
import os
print(*os.listdir("/proc"), end="")
for pid in range(2, 400):
    try:
        os.kill(pid, 0)
        print(pid)
    except OSError:
        pass
""",
    "the environment": """
import os
print(*[k for k in os.environ if "SECRET" in k], *[v for v in os.environ.values() if "hunter2" in v], end="")
for path in ("/proc/self/environ", "/proc/1/environ", "/proc/1/cmdline"):
    try:
        print(open(path).read())
    except OSError:
        pass
""",
    "the check in memory": """
import gc, sys
for o in gc.get_objects():
    if isinstance(o, dict):
        for v in list(o.values()):
            if type(v) is str and "secret_of" + "_the_check" in v:
                print("found")
""",
    "the hidden tests": """
for name in ("checks", "checks.weighted_averages.hidden", "autograder.checks", "autograder.run"):
    try:
        __import__(name)
        print(name)
    except ImportError:
        pass
""",
    "another process's memory": """
import ctypes, os
libc = ctypes.CDLL(None)
for pid in (os.getppid(), 2, 100):
    if libc.ptrace(0x4206, pid, 0, 0) == 0:
        print("ptrace")
if libc.process_vm_readv(os.getpid(), 0, 0, 0, 0, 0) == 0:
    print("process_vm_readv")
""",
    "the network": """
import socket
for family in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX, socket.AF_NETLINK):
    try:
        socket.socket(family, socket.SOCK_STREAM if family != socket.AF_NETLINK else socket.SOCK_RAW)
        print(family)
    except OSError:
        pass
""",
    "a process of its own": """
import os
try:
    if os.fork() == 0:
        os._exit(0)
    print("forked")
except OSError:
    pass
""",
    "another program": """
import os, subprocess
for run in (subprocess.run, lambda args: os.posix_spawn(args[0], args, {})):
    try:
        run(["/bin/true"])
        print("ran")
    except OSError:
        pass
""",
    "limits of its own": """
import resource
for limit in (resource.RLIMIT_AS, resource.RLIMIT_CPU, resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE):
    try:
        hard = resource.getrlimit(limit)[1]
        resource.setrlimit(limit, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        print("raised")
    except (ValueError, OSError):
        if resource.getrlimit(limit)[1] == resource.RLIM_INFINITY:
            print("there is none")
""",
    "a place to leave something": """
import os
places = ["/", "/dev", "/dev/shm", "/engine", "/env/0", "/usr", "/python", "/etc", "/proc"]
for folder in [os.environ["LEFT"]] if "LEFT" in os.environ else places:
    try:
        open(os.path.join(folder, "left-by-a-test"), "w").write("here")
        os.unlink(os.path.join(folder, "left-by-a-test"))
        print(folder)
    except OSError:
        pass
""",
    "what an earlier submission left": """
import os
place = os.environ.get("LEFT", "/tmp")
print(*os.listdir(place), end="")
open(os.path.join(place, "left"), "w").write("here")
""",
}
# What a worker could use up, hold or change for the whole account or machine: each prints what it got hold of.
LIBC = (
    "import ctypes, fcntl, os\nlibc = ctypes.CDLL(None, use_errno=True)\nshared = os.open(os.__file__, os.O_RDONLY)\n"
)
REACHES = {
    "timers": "if libc.timer_create(1, None, ctypes.byref(ctypes.c_void_p())) == 0: print('timer')",
    "queued signals": """
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMIN])
if libc.sigqueue(os.getpid(), signal.SIGRTMIN, ctypes.c_void_p(0)) == 0: print('queued')
""",
    "watches of files": """
if libc.inotify_init() >= 0: print('inotify')
if libc.inotify_init1(0) >= 0: print('inotify')
if libc.fanotify_init(0x200, 0) >= 0: print('fanotify')
""",
    "watches of descriptors": """
import select
try:
    select.epoll()
    print('epoll')
except OSError:
    pass
""",
    "requests to disks": """
call = {'x86_64': 206, 'aarch64': 0}[os.uname().machine]
if libc.syscall(call, 1, ctypes.byref(ctypes.c_ulong(0))) == 0: print('io_setup')
if libc.syscall(425, 1, ctypes.create_string_buffer(120)) >= 0: print('io_uring')  # where Linux is set to allow it
""",
    "memory that stays": """
block = ctypes.create_string_buffer(4096)
if libc.mlock(block, 1) == 0 or libc.mlockall(1) == 0: print('locked')
""",
    "locks of shared files": """
try:
    fcntl.flock(shared, fcntl.LOCK_EX | fcntl.LOCK_NB)
    print('flock')
except OSError:
    pass
for command in (fcntl.F_SETLK, fcntl.F_SETLKW, 37, 38):
    try:
        fcntl.fcntl(shared, command, b'\\0' * 64)
        print('lock', command)
    except OSError:
        pass
call = {'x86_64': 72, 'aarch64': 25}[os.uname().machine]
lock, command = ctypes.create_string_buffer(64), ctypes.c_long(fcntl.F_SETLK | 1 << 32)
if libc.syscall(call, ctypes.c_long(shared), command, lock) == 0: print('a lock in disguise')
""",
    "leases of shared files": """
folder = os.open(os.path.dirname(os.__file__), os.O_RDONLY)
for file, command, argument in ((shared, 1024, fcntl.F_RDLCK), (folder, 1026, 1), (shared, 8, os.getpid())):
    try:
        fcntl.fcntl(file, command, argument)
        print(command)
    except OSError:
        pass
""",
    "memory of pipes": """
try:
    fcntl.fcntl(os.pipe()[1], 1031, 1 << 20)
    print('a large pipe')
except OSError:
    pass
""",
    "descriptors on their way": """
import socket
try:
    one, other = socket.socketpair()
    socket.send_fds(one, [b'x'], [shared])
    print('sent')
except OSError:
    pass
""",
    "disks of the machine": "if libc.syncfs(shared) == 0: print('synced')",
    "what others read": """
there = ctypes.create_string_buffer(1)
libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]
libc.mmap.restype, libc.mmap.argtypes = ctypes.c_void_p, [ctypes.c_void_p, *[ctypes.c_long] * 5]
if libc.mincore(libc.mmap(None, 4096, 1, 1, shared, 0), 4096, there) == 0: print('mincore')
""",
    "priorities": """
try:
    os.setpriority(os.PRIO_USER, 0, os.getpriority(os.PRIO_USER, 0))
    print('priority')
except OSError:
    pass
""",
    "priorities of disks": """
call = {'x86_64': (251, 252), 'aarch64': (30, 31)}[os.uname().machine]
own = libc.syscall(call[1], 1, 0)
if libc.syscall(call[0], 1, 0, max(own, 0)) == 0: print('ioprio_set')
""",
    "schedulers": """
try:
    os.sched_setscheduler(0, os.sched_getscheduler(0), os.sched_getparam(0))
    print('scheduler')
except OSError:
    pass
try:
    os.sched_setparam(0, os.sched_getparam(0))
    print('its parameters')
except OSError:
    pass
own, call = ctypes.create_string_buffer(48), {'x86_64': (314, 315), 'aarch64': (274, 275)}[os.uname().machine]
if libc.syscall(call[1], 0, own, 48, 0) == 0 and libc.syscall(call[0], 0, own, 0) == 0: print('all of it')
""",
    "interrupts of all processors": """
call = {'x86_64': 324, 'aarch64': 283}[os.uname().machine]
if libc.syscall(call, 0, 0, 0) >= 0: print('membarrier')
""",
    "hints that stay with a file": """
for command in (1036, 1038):
    try:
        fcntl.fcntl(shared, command, (2).to_bytes(8, 'little'))
        print('a hint', command)
    except PermissionError:
        pass
    except OSError as error:
        print(command, error)  # it came as far as the kernel, which may not know it
""",
    "the clock of the machine": """
if libc.adjtimex(ctypes.create_string_buffer(256)) >= 0: print('its settings')  # read alone, which anybody may else
""",
    "memory and queues between processes": """
if libc.shmget(0, 4096, 0o600) >= 0: print('shmget')
if libc.semget(0, 1, 0o600) >= 0: print('semget')
if libc.msgget(0, 0o600) >= 0: print('msgget')
if libc.memfd_create(b'x', 0) >= 0: print('memfd')
""",
    "what is kept of files in memory": """
try:
    os.posix_fadvise(shared, 0, 0, os.POSIX_FADV_DONTNEED)
    print('forgotten')
except OSError:
    pass
libc.readahead.argtypes = [ctypes.c_int, ctypes.c_long, ctypes.c_size_t]
if libc.readahead(shared, 0, 4096) == 0: print('readahead')
""",
    "calls newer than the filter": """
if libc.syscall(436, 1 << 20, 1 << 20, 0) == 0: print('close_range')
number = {'size': 24, 'mount': 2**64 - 1, 'from': 0}
mounts = (ctypes.c_uint64 * 64)()
found = libc.syscall(458, ctypes.byref((ctypes.c_uint64 * 3)(*number.values())), mounts, 64, 0)
if found > 0: print(f'{found} mounts')  # where Linux is as new as 6.8
""",
    "keys": """
call = {'x86_64': 248, 'aarch64': 217}[os.uname().machine]
if libc.syscall(call, b'user', b'x', b'x', 1, -2) >= 0: print('add_key')
call = {'x86_64': 250, 'aarch64': 219}[os.uname().machine]
if libc.syscall(call, 0, -3, 1) >= 0 or os.uname().nodename != 'sandbox': print('keyctl')
""",
}
REACHES = {name: LIBC + probe for name, probe in REACHES.items()}
LOOKED = "\nprint('looked')\n"


@pytest.fixture(scope="module")
def source():
    return source_notebook()


@pytest.mark.parametrize("name", SPIES | REACHES)
def test_a_spy_sees_nothing(sandbox, source, name, tmp_path):
    """Nor does a worker get hold of anything that it would share with others."""
    spy = (SPIES | REACHES)[name]
    for _ in range(2):
        graded = grade_notebook(sandbox, submission(source, double=spy + LOOKED + WRONG), source)
        (output,) = find(graded.notebook, "double").outputs
        assert output.text == "looked\n"
        assert points(graded) == {"double_check": 0, "count_check": 1, "Layer_check": 4}
    environment = os.environ | {"SECRET_OF_THE_GRADER": "hunter2", "LEFT": str(tmp_path), "PYTHONPATH": str(REPOSITORY)}
    remembered = f"kept = {{'check': {source.cells[4].source!r}, 'and': []}}\n"
    for _ in range(2):  # the second finds what the first one left
        found = subprocess.run(
            [sys.executable, "-c", remembered + spy],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        ).stdout
    assert found.strip()


def test_no_namespaces_and_mounts(sandbox, source):
    """An ordinary process may make namespaces, or there would be no sandbox: that is what bubblewrap does."""
    spy = """
import ctypes
libc = ctypes.CDLL(None)
if libc.unshare(0x10000000) == 0 or libc.mount(b"none", b"/proc", b"proc", 0, 0) == 0 or libc.umount2(b"/proc", 2) == 0:
    print("got out")
"""
    graded = grade_notebook(sandbox, submission(source, double=spy + LOOKED + WRONG), source)
    assert find(graded.notebook, "double").outputs[0].text == "looked\n"
    inside = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", sys.executable, "-c", spy]
    assert "got out" in subprocess.run(inside, capture_output=True, text=True, check=True).stdout


# Each ends or stops the worker when `double` is called: what it does, how the grader says it ended, what an ordinary
# process comes to, and what is done there instead where the same would reach too far.
KILLERS = {
    "os._exit": ("import os\nos._exit(0)", "it ended the process", "dies", None),
    "a segmentation fault": ("import ctypes\nctypes.string_at(0)", "segmentation fault", "dies", None),
    "an abort": ("import os\nos.abort()", "signal 6|segmentation fault", "dies", None),
    "a killed parent": (
        "import os, signal\nos.kill(os.getppid(), 9)\nos.kill(-1, 9)\nos.kill(1, 9)\nos._exit(0)",
        "it ended the process|PermissionError|ProcessLookupError",
        "dies",
        "import os, time\nif os.fork() == 0:\n    os.kill(os.getppid(), 9)\ntime.sleep(10)",
    ),
    "too many threads": (
        "import threading, time\nthreading.stack_size(65536)\n"
        "for _ in range(200):\n    threading.Thread(target=time.sleep, args=(5,), daemon=True).start()\ntime.sleep(1)",
        "more threads than it may",
        "done",
        None,
    ),
    "an endless loop": ("while True:\n    pass", "it took too long", "hangs", None),
    "an endless loop that cannot be interrupted": (
        "import signal\nfor n in (signal.SIGTERM, signal.SIGINT, signal.SIGXCPU, signal.SIGALRM):\n"
        "    signal.signal(n, signal.SIG_IGN)\n"
        "while True:\n    try:\n        while True:\n            pass\n    except BaseException:\n        pass",
        "it took too long",
        "hangs",
        None,
    ),
    "an endless loop in C": ("sum(iter(int, 1))", "it took too long", "hangs", None),
    "endless sleep": ("import time\ntime.sleep(10**6)", "it took too long", "hangs", None),
}


@pytest.mark.parametrize("name", KILLERS)
def test_a_killer_ends_only_its_own_exercise(sandbox, source, name):
    killer, told, outcome, instead = KILLERS[name]
    body = killer.replace("\n", "\n    ")
    graded = grade_notebook(sandbox, submission(source, double=f"def double(x):\n    {body}"), source)
    assert any(reason in graded.items[0].message for reason in told.split("|")), graded.items[0]
    assert points(graded) == {"double_check": 0, "count_check": 1, "Layer_check": 4}
    assert_fit_to_show(graded)
    assert_unharmed(sandbox, source)
    assert happens(plainly(instead or killer, ""), seconds=2 if outcome == "hangs" else SECONDS) == outcome


def test_a_killer_in_a_cell_ends_only_that_cell(sandbox, source):
    for killer, status in ((KILLERS["os._exit"][0], "crashed"), (KILLERS["an endless loop"][0], "timeout")):
        graded = grade_notebook(sandbox, submission(source, double=killer), source)
        assert statuses(graded) == {"double_check": status, "count_check": "passed", "Layer_check": "passed"}


# Each wants more than it may have: the error that it meets in the worker. Where nothing holds it, a dose that is small
# for this machine, and more than a worker may have, goes through.
BOMBS = {
    "processes by multiprocessing": (
        "import multiprocessing\nforks = multiprocessing.get_context('fork')\n"
        "for _ in range({}):\n    forks.Process(target=print).start()",
        "PermissionError",
        2,
    ),
    "a memory bomb": ("a = []\nfor _ in range({}):\n    a.append(bytearray(10**7))", "MemoryError", 100),
    "a memory bomb in torch": (
        "import torch\na = []\nfor _ in range({}):\n    a.append(torch.ones(10**7))",
        "RuntimeError",
        20,
    ),
    "a full disk": (
        "import os\nfor i in range({}):\n    open(f'{{os.environ[\"HOME\"]}}/{{i}}', 'wb').write(b'x' * 10**6)",
        "OSError",
        20,
    ),
    "a large file": (
        "import os\nwith open(os.environ['HOME'] + '/a', 'wb') as file:\n"
        "    for _ in range({}):\n        file.write(b'x' * 10**6)",
        "OSError",
        20,
    ),
    "too many files": (
        "import os\nfiles = [open(f'{{os.environ[\"HOME\"]}}/{{i}}', 'w') for i in range({})]",
        "OSError",
        100,
    ),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_does_not_go_off(sandbox, source, name, tmp_path, monkeypatch):
    bomb, error, dose = BOMBS[name]
    graded = grade_notebook(sandbox, submission(source, double=bomb.format(10**5)), source)
    assert graded.items[0].status == "error"
    assert error in graded.items[0].message
    assert_unharmed(sandbox, source)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert happens(plainly(bomb.format(dose), "")) == "done"
