"""Atomic operations of a request: instructions that lock a cache line, by the function that they are in.

Callgrind counts how often each instruction runs; the disassembly says which instructions lock. All series run one worker,
where such an instruction costs about 20 cycles; with more workers, one on a line that others write costs a hundred and
more. Whether a line is shared cannot be measured here, so that the crates decide: the runtime of a worker, a connection's
buffers, and counters of which each thread has a copy, are written by one worker alone.
"""

import re
import subprocess
from collections import Counter

from . import instructions, machine, stages
from .report import Report

# Crates, and a file of ours, whose atomics are written by one worker alone.
OF_ONE_WORKER = {
    "arc_swap", "atomic_waker", "bytes", "futures_channel", "futures_core", "futures_util", "h2", "http", "hyper", "mio", "slab", "tokio",
    "want",
    "src/telemetry/metrics/per_thread.rs",
}
GOAL = 4


def run(suite):
    report = Report("atomics", "Atomic operations of a request")
    machine.say("callgrind: countersign")
    profile = instructions.under_callgrind(suite, "countersign")
    locking = locks(suite.binary)
    # Of libraries there are no addresses in our file; libc locks nothing while an arena has one thread.
    executed = {
        (address, function): count
        for (file, function, address), count in profile.own.items()
        if count > 0.01 and address in locking and stages.is_program((file, function, address), suite.binary)
    }
    addresses = sorted({address for address, _ in executed})
    chains = stages.symbolize(suite.binary, addresses)
    places = Counter()
    for (address, function), count in executed.items():
        places[place(chains.get(address, []), function)] += count
    rows, shared = [], 0
    for (text, is_own), count in places.most_common():
        rows.append([text, f"{count:.2f}", "one worker" if is_own else "shared"])
        shared += 0 if is_own else count
    report.table("", ["innermost files", "a request", "written by"], rows)
    report.target(4, "atomic operations of a request on lines that workers share", shared, GOAL)
    report.note(f"all together: {sum(places.values()):.1f} a request; a mutex of parking_lot is two")
    report.numbers = {"places": {text: count for (text, _), count in places.items()}, "shared": shared}
    return report


def locks(binary):
    """The addresses of instructions that lock: with the prefix, and exchanges with memory, which lock without it."""
    finished = subprocess.run(["objdump", "-d", "--no-show-raw-insn", str(binary)], capture_output=True, text=True, check=True)
    line = re.compile(r"^\s*([0-9a-f]+):\s+(lock\b|xchg\s+.*\()", re.MULTILINE)
    return {int(match[1], 16) for match in line.finditer(finished.stdout)}


def place(chain, function):
    """The two innermost files that are not of the standard library, and whether one worker alone writes there."""
    files = [shown(file) for file in chain if not file.startswith("/rustc/") and "/library/" not in file][:2]
    if "Arc<T,A>::drop_slow" in function:
        # It ends the last reference: there is no other one.
        return function, True
    crate = re.match(r"(?:core::ptr::drop_in_place)?[<&(\s]*(?:impl )?(\w+)::", function)
    owners = {file if file.startswith("src/") else file.split(":")[0] for file in files} or {crate.group(1) if crate else ""}
    return " < ".join(files) or function[:80], not owners.isdisjoint(OF_ONE_WORKER)


def shown(file):
    """`crate:file` for a dependency, `src/…` for our own."""
    _, found, rest = file.partition("/registry/src/")
    if found:
        package, _, path = rest.split("/", 1)[1].partition("/")
        return f"{re.sub(r'-[0-9].*', '', package).replace('-', '_')}:{path.removeprefix('src/')}"
    return re.sub(r".*/(?=src/)", "", file)
