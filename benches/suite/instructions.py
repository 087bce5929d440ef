"""Target 2: instructions in user space per request, and their distribution.

Two ways of counting. Callgrind runs the program on an emulated processor and knows the caller of each function, which
separates the stages; but that processor has no SHA instructions, so HMAC is counted as the portable code. Single steps
of the worker's thread (`ptrace`) count what the real processor runs, and show no callers. Both count the difference
between a short and a long run, so that starting, connecting and closing cancel out. Callgrind also shows the code that
a request runs through, whose 64-byte lines compete for the processor's caches, and simulates such caches.
"""

import subprocess
import sys
import time

from . import callgrind, machine, peers, stages, steps
from .report import Report

# The requests of so many connections are under way, whose memory does not fit into a cache together.
CONNECTIONS = 64

# 32 KiB each for code and for data, and 512 KiB for both in the second level. The kernel's part is not simulated.
CACHES = ("--cache-sim=yes", "--I1=32768,8,64", "--D1=32768,8,64", "--LL=524288,8,64")


def run(suite):
    report = Report("instructions", "Instructions in user space per request")
    options = suite.options
    found = {}
    with suite.started("instructions") as started:
        api = started.add(peers.api(started.directory / "api", options.load_core))
        ours = started.add(peers.Countersign(started.directory / "ours", options.proxy_core, suite.binary, api.port))
        nginx = started.add(peers.nginx(started.directory / "nginx", options.proxy_core, api.port))
        nginx.credentials_file = ours.credentials_file
        for peer in (ours, nginx):
            machine.say(f"single steps: {peer.name}")
            found[peer.name] = {"steps": steps.per_request(suite, peer)}
    for name in ("countersign", "nginx"):
        machine.say(f"callgrind: {name}")
        profile = under_callgrind(suite, name)
        found[name] |= {"callgrind": profile.total(), "lines": profile.lines(), "misses": misses(profile.events)}
        if name == "countersign":
            staged = stages.split(profile, suite.binary)
    rows = [
        [
            name,
            f"{one['callgrind']:,.0f}",
            f"{one['steps']:,.0f}" if one["steps"] else "not allowed here",
            f"{one['lines']:,} ({one['lines'] / 16:.0f} KiB)",
            " / ".join(f"{one['misses'][level]:,.0f}" for level in ("code", "data", "second")),
        ]
        for name, one in found.items()
    ]
    columns = [
        "proxy", "callgrind (no SHA instructions)", "single steps on this processor", "64-byte lines of code",
        "simulated misses of the caches: code / data / data that the second level misses too",
    ]
    report.table("", columns, rows)
    total = sum(staged.values())
    report.table(
        "By stage, callgrind. What a library does is counted to the stage that called it; HMAC, allocation, system calls (libc) and the "
        "runtime (tokio, mio) stand apart.",
        ["stage", "instructions", "share"],
        [[stage, f"{cost:,.0f}", f"{cost / total:.1%}"] for stage, cost in sorted(staged.items(), key=lambda item: -item[1])],
    )
    report.numbers = {"per_request": found, "stages": staged}
    return report


def under_callgrind(suite, name, more=""):
    """The profile of one request; `more` is configuration of countersign."""
    options = suite.options
    short = 500 if options.quick else 1000
    with suite.started("callgrind") as started:
        directory = started.directory
        out = directory / "callgrind.out"
        under = [
            "valgrind", "--tool=callgrind", "--dump-instr=yes", "--quiet", f"--callgrind-out-file={out}.%p", *CACHES,
        ]
        api = started.add(peers.api(directory / "api", options.load_core))
        ours = started.add(
            peers.Countersign(
                directory / "ours", options.proxy_core, suite.binary, api.port, under=under if name == "countersign" else (), more=more,
            )
        )
        peer = ours
        if name == "nginx":
            peer = started.add(peers.nginx(
                directory / "nginx", options.proxy_core, api.port, under=under, main="master_process off;",
            ))
            peer.credentials_file = ours.credentials_file
        pid = peer.pids()[0]
        counts = [0, short, 4 * short]
        dump(pid)
        suite.load.drive(peer, short, connections=CONNECTIONS)
        for requests in counts[1:]:
            dump(pid)
            suite.load.drive(peer, requests, connections=CONNECTIONS)
        dump(pid)
        files = sorted(directory.glob("callgrind.out.*"), key=lambda file: file.stat().st_mtime_ns)
        files = [file for file in files if file.name.startswith(f"callgrind.out.{pid}.")]
        files.sort(key=lambda file: int(file.suffix[1:]))
        if len(files) < 4:
            sys.exit(f"callgrind left {len(files)} dumps")
        small, large = (callgrind.read(file) for file in files[2:4])
    return callgrind.difference(large, small, 3 * short)


def misses(events):
    """The misses of the simulated caches."""
    return {"code": events["I1mr"], "data": events["D1mr"] + events["D1mw"], "second": events["DLmr"] + events["DLmw"]}


def dump(pid):
    """Makes callgrind write its counts since the last time."""
    subprocess.run(["callgrind_control", "-d", str(pid)], check=True, capture_output=True)
    time.sleep(0.5)
