"""Target 10: start to first request, memory of the idle process, size of the binary."""

import shutil
import socket
import statistics
import subprocess
import time

from . import machine, peers
from .report import Report

# Memory is measured in some of the processes, this many seconds after their start.
RESTING, REST = 5, 10


def run(suite):
    report = Report("start", "Start, memory, size")
    options = suite.options
    with suite.started("start") as started:
        api = started.add(peers.api(started.directory / "api", options.load_core))
        times, own = [], []
        for number in range(5 if options.quick else 20):
            ours = peers.Countersign(started.directory / f"ours-{number}", None, suite.binary, api.port)
            if number < RESTING:
                time.sleep(REST)
                own.append(machine.resident_bytes(ours.pids(), "Private_Dirty"))
            ours.stop()
            # A second start, as in operation: the store and the nonce window are there.
            times.append(first_answer(ours))
        stripped = started.directory / "stripped"
        shutil.copy(suite.binary, stripped)
        subprocess.run(["strip", str(stripped)], check=True)
        size = stripped.stat().st_size
    milliseconds, owned = statistics.median(times) * 1000, statistics.median(own) / (1 << 20)
    report.table("", ["", "measured"], [
        ["exec to the answer of the first signed request, median", f"{milliseconds:.1f} ms"],
        ["the longest", f"{max(times) * 1000:.1f} ms"],
        [f"memory that the idle process owns (Private_Dirty), {REST} s after its start", f"{owned:.1f} MiB"],
        ["binary, stripped", f"{size / (1 << 20):.2f} MiB"],
    ])
    report.target(10, "start to first request", milliseconds, 50, unit=" ms")
    report.target(10, "memory of its own, idle", owned, 12, unit=" MiB")
    report.target(10, "binary, stripped", size / (1 << 20), 12, unit=" MiB")
    report.numbers = {"start_seconds": times, "own_bytes": own, "size_bytes": size}
    return report


def first_answer(ours):
    """Seconds from exec until a request that is tried all the time gets its 200."""
    one = ours.credentials[0]
    url = f"http://{peers.HOST}/v1/members?limit=20"
    command = [
        str(ours.binary), "sign", "GET", url, "--consumer-key", one["key"], "--consumer-secret", one["secret"],
        "--token", one["token"], "--token-secret", one["token_secret"],
    ]
    signed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    field = signed if signed.lower().startswith("authorization:") else f"Authorization: {signed}"
    request = f"GET /v1/members?limit=20 HTTP/1.1\r\nHost: {peers.HOST}\r\nConnection: close\r\n{field}\r\n\r\n".encode()
    with open(ours.directory / "log", "wb") as log:
        began = time.monotonic()
        process = subprocess.Popen([str(ours.binary), "serve", "--config", str(ours.config)], stderr=log)
        while True:
            try:
                with socket.create_connection(("127.0.0.1", ours.port)) as connection:
                    connection.sendall(request)
                    answer = connection.recv(4096)
                    break
            except ConnectionError:
                time.sleep(0.0005)
        elapsed = time.monotonic() - began
        machine.stop(process)
    assert answer.startswith(b"HTTP/1.1 200 "), answer
    return elapsed
