"""The identity assertion through whole requests: off, one for many requests, and one for each.

The limit is compared with instructions, which vary less; CPU time also includes the kernel's cost of a longer head.
"""

import statistics
import subprocess

from . import instructions, machine, peers
from .report import Report
from .rounds import interleave

OFF = "off"
KEYS = {"Ed25519": ["-algorithm", "ed25519"], "P-256": ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"]}
CASES = [("none", "Ed25519"), ("request", "Ed25519"), ("request", "P-256")]


def run(suite):
    report = Report("assertion", "The identity assertion, whole requests")
    options = suite.options
    with suite.started("assertion") as started:
        cases = {OFF: ""}
        for bind, key in CASES:
            cases[f'bind = "{bind}", {key}'] = section(started.directory / f"{key}.pem", key, bind)
        counted = {name: [] for name in cases}
        for _ in range(1 if options.quick else 3):
            for name, more in cases.items():
                counted[name].append(instructions.under_callgrind(suite, "countersign", more).total())
                machine.say(f"callgrind: {name}: {counted[name][-1]:,.0f}")
        api = started.add(peers.api(started.directory / "api", options.load_core))
        rows = []
        for number, (name, more) in enumerate(cases.items()):
            directory = started.directory / f"ours-{number}"
            rows.append(started.add(peers.Countersign(directory, options.proxy_core, suite.binary, api.port, name=name, more=more)))
        for peer in rows:
            suite.load.drive(peer, 5000, connections=64)
        rounds = interleave(
            "CPU µs a request", rows, 2 * options.rounds, lambda peer: suite.load.drive(peer, options.requests // 4, connections=64),
        )
    table = []
    ratio = {name: statistics.median(one / off for one, off in zip(totals, counted[OFF])) for name, totals in counted.items()}
    for name, totals in counted.items():
        low, high = rounds.spread(name, OFF)
        table.append([
            name, f"{statistics.median(totals):,.0f}", f"{ratio[name]:.3f}",
            f"{rounds.median(name, 'cpu_us'):.2f}", f"{rounds.ratio(name, OFF):.3f}", f"{low:.3f} to {high:.3f}",
        ])
    columns = ["assertion", "instructions", "to off", "µs CPU/request", "to off", "half of the rounds"]
    report.table("Instructions by callgrind, medians of three runs, ratios taken within a run; CPU time over 64 kept connections.", columns, table)
    kept = next(name for name in cases if "none" in name)
    report.target(13, 'an assertion with bind = "none", instructions to none at all', ratio[kept], 1.03)
    report.numbers = {"instructions": counted, "rounds": rounds.rows}
    return report


def section(file, key, bind):
    """Makes a key, and returns the configuration of an assertion with it."""
    subprocess.run(["openssl", "genpkey", *KEYS[key], "-out", str(file)], check=True, capture_output=True)
    file.chmod(0o600)
    return f"""
            [identity.assertion]
            header = "X-Auth-Assertion"
            key_files = ["{file}"]
            audience = "https://api.internal"
            bind = "{bind}"
    """
