"""The identity assertion through whole requests: off, one for many requests, and one for each.

Instructions repeat within 0.3 %, and the limit is held to them; CPU time has what a longer head costs the kernel too.
"""

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
        counted = {}
        for name, more in cases.items():
            machine.say(f"callgrind: {name}")
            counted[name] = instructions.under_callgrind(suite, "countersign", more).total()
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
    for name, count in counted.items():
        low, high = rounds.spread(name, OFF)
        table.append([
            name, f"{count:,.0f}", f"{count - counted[OFF]:+,.0f}", f"{count / counted[OFF]:.3f}",
            f"{rounds.median(name, 'cpu_us'):.2f}", f"{rounds.ratio(name, OFF):.3f}", f"{low:.3f} to {high:.3f}",
        ])
    columns = ["assertion", "instructions", "more", "to off", "µs CPU/request", "to off", "half of the rounds"]
    report.table("Instructions by callgrind; CPU time over 64 kept connections.", columns, table)
    kept = next(name for name in cases if "none" in name)
    report.target(13, 'an assertion with bind = "none", instructions to none at all', counted[kept] / counted[OFF], 1.03)
    report.numbers = {"instructions": counted, "rounds": rounds.rows}
    return report


def section(file, key, bind):
    """The configuration of an assertion, whose key it makes."""
    subprocess.run(["openssl", "genpkey", *KEYS[key], "-out", str(file)], check=True, capture_output=True)
    file.chmod(0o600)
    return f"""
            [identity.assertion]
            header = "X-Auth-Assertion"
            key_files = ["{file}"]
            audience = "https://api.internal"
            bind = "{bind}"
    """
