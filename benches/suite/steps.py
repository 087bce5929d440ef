"""Counts the instructions of one thread in user space by stepping through them (ptrace, x86-64)."""

import ctypes
import os
import platform
import signal
import socket
import statistics
import threading
from pathlib import Path

ATTACH, DETACH, STEP, PEEK_USER = 16, 17, 9, 3
RIP = 16 * 8
WALL = 0x40000000


def per_request(suite, peer):
    """Instructions of one request on kept connections; None where stepping is not possible."""
    if platform.machine() != "x86_64":
        return None
    # On the core of the traced thread: handing over from core to core takes several times as long.
    everywhere = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {suite.options.proxy_core})
    task = worker(peer, lambda: suite.load.drive(peer, 2000, connections=16))
    try:
        # The median of three leaves out a timer that fired.
        return statistics.median(count(suite, peer, task, 64) / 64 for _ in range(1 if suite.options.quick else 3))
    except PermissionError:
        return None
    finally:
        os.sched_setaffinity(0, everywhere)


def count(suite, peer, task, requests):
    libc = ctypes.CDLL(None, use_errno=True)
    ptrace = libc.ptrace
    ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    ptrace.restype = ctypes.c_long
    waitpid = libc.waitpid
    waitpid.argtypes = [ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.c_int]
    # As many connections as under callgrind: several requests wait whenever the thread looks for events.
    with suite.load.connected(peer, requests, connections=16) as run:
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
        while not over.is_set():
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
        ptrace(DETACH, task, None, None)
        sender.join()
    return steps


def worker(peer, work):
    """The thread that `work` kept busy."""
    before = busy(peer)
    work()
    after = busy(peer)
    return max(after, key=lambda task: after[task] - before.get(task, 0))


def busy(peer):
    """Processor time of each thread, in nanoseconds."""
    tasks = Path(f"/proc/{peer.pids()[0]}/task").iterdir()
    return {int(task.name): int((task / "schedstat").read_text().split()[0]) for task in tasks}
