"""Counts the instructions of one thread in user space by stepping through them (ptrace, x86-64)."""

import ctypes
import os
import platform
import signal
import socket
import statistics
import threading
import time
from pathlib import Path

ATTACH, DETACH, STEP, PEEK_USER = 16, 17, 9, 3
RIP = 16 * 8
WALL = 0x40000000
# Seconds of stepping after which the count is given up: beside much other load each step waits for a turn of the core.
LONGEST = 60


def per_request(suite, peer, requests=64, times=3, **flags):
    """Instructions of one request on kept connections, the median of some counts; None where stepping is not possible or takes too long. `flags` are those of the load generator."""
    # Several requests wait whenever the thread looks for events, as under callgrind.
    flags = {"connections": 16, **flags}
    if platform.machine() != "x86_64":
        return None
    # On the core of the traced thread: handing over from core to core takes several times as long.
    everywhere = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {suite.options.proxy_core})
    task = worker(peer, lambda: suite.load.drive(peer, max(2000, flags["connections"]), **flags))
    try:
        # The median of three leaves out a timer that fired.
        counts = [count(suite, peer, task, requests, flags) for _ in range(1 if suite.options.quick else times)]
        return None if None in counts else statistics.median(counts) / requests
    except PermissionError:
        return None
    finally:
        os.sched_setaffinity(0, everywhere)


def count(suite, peer, task, requests, flags):
    """The instructions of these requests together; None if it took too long."""
    libc = ctypes.CDLL(None, use_errno=True)
    ptrace = libc.ptrace
    ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    ptrace.restype = ctypes.c_long
    waitpid = libc.waitpid
    waitpid.argtypes = [ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.c_int]
    with suite.load.connected(peer, requests, **flags) as run:
        if ptrace(ATTACH, task, None, None) != 0:
            raise PermissionError(ctypes.get_errno())
        status = ctypes.c_int()
        waitpid(task, ctypes.byref(status), WALL)
        over = threading.Event()

        def send():
            run()
            over.set()
            # The thread waits for events by now: one more connection wakes it.
            socket.create_connection(("127.0.0.1", peer.port)).close()

        sender = threading.Thread(target=send)
        sender.start()
        steps, last, deliver = 0, None, None
        end = time.monotonic() + LONGEST
        while not over.is_set() and time.monotonic() < end:
            if ptrace(STEP, task, None, deliver) != 0:
                break
            waitpid(task, ctypes.byref(status), WALL)
            stopped = (status.value >> 8) & 0xFF
            deliver = None if stopped in (signal.SIGTRAP, signal.SIGSTOP) else stopped
            place = ptrace(PEEK_USER, task, RIP, None)
            # A repeated string instruction stops after each round; it is one instruction all the same.
            if place != last:
                steps += 1
            last = place
        is_whole = over.is_set()
        ptrace(DETACH, task, None, None)
        sender.join()
    return steps if is_whole and steps else None


def worker(peer, work):
    """The thread that `work` kept busy; of countersign a worker, since a thread of the store may be busier."""
    before = busy(peer)
    work()
    after = busy(peer)
    workers = [task for task in after if name_of(peer, task).startswith("worker-")]
    return max(workers or after, key=lambda task: after[task] - before.get(task, 0))


def name_of(peer, task):
    return Path(f"/proc/{peer.pids()[0]}/task/{task}/comm").read_text()


def busy(peer):
    """Processor time of each thread, in nanoseconds."""
    tasks = Path(f"/proc/{peer.pids()[0]}/task").iterdir()
    return {int(task.name): int((task / "schedstat").read_text().split()[0]) for task in tasks}
