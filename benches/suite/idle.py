"""Target 5: resident memory of an idle kept connection."""

import time

from . import machine, peers, plot
from .report import Report


def run(suite):
    report = Report("idle", "Idle kept connections")
    options = suite.options
    most = machine.most_connections()
    counts = [1000, most] if options.quick else [1000, 2500, 5000, 7500, most]
    measured = {}
    with suite.started("idle") as started:
        api = started.add(peers.api(started.directory / "api", options.load_core))
        ours = started.add(peers.Countersign(started.directory / "ours", options.proxy_core, suite.binary, api.port))
        nginx = started.add(peers.nginx(started.directory / "nginx", options.proxy_core, api.port))
        nginx.credentials_file = ours.credentials_file
        for peer in (nginx, ours):
            suite.load.drive(peer, 20_000, connections=64)
            before = machine.resident_bytes(peer.pids())
            measured[peer.name] = [(count, (held(suite, peer, count) - before) / count) for count in counts]
            machine.say(f"{peer.name}: {measured[peer.name]}")
    report.table(
        "Resident memory above that of the process before, by connection; each had one answered request.",
        ["connections", "nginx bytes each", "countersign bytes each", "to nginx"],
        [
            [f"{count:,}", f"{nginx_each:,.0f}", f"{ours_each:,.0f}", f"{ours_each / max(nginx_each, 1):.2f}"]
            for (count, nginx_each), (_, ours_each) in zip(measured["nginx"], measured["countersign"])
        ],
    )
    report.target(5, f"resident KiB of an idle connection at {most:,}", measured["countersign"][-1][1] / 1024, 8, unit=" KiB")
    report.numbers = measured
    suite.plot("idle-connections", plot.lines(
        "Memory held by idle kept connections", "connections", "resident MiB above the process without them",
        [(name, [(count, count * each / (1 << 20)) for count, each in found]) for name, found in measured.items()], logarithmic=False,
    ))
    return report


def held(suite, peer, count):
    """Resident bytes while `count` connections idle."""
    with suite.load.connected(peer, 64, connections=count) as run:
        run()
        # They release their buffers after half a second, and free pages are returned every five.
        time.sleep(7)
        resident = machine.resident_bytes(peer.pids())
    time.sleep(1)
    return resident
