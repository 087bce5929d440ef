"""HTTP/2 to the caller by h2load, which cannot sign; so the signature is in the query, each target used once."""

import re
import subprocess

from . import machine, peers
from .report import Report
from .rounds import interleave

STREAMS = 64


def run(suite):
    report = Report("http2", "HTTP/2 to the caller")
    options = suite.options
    with suite.started("http2") as started:
        api = started.add(peers.api(started.directory / "api", options.load_core))
        ours = started.add(peers.Countersign(started.directory / "ours", options.proxy_core, suite.binary, api.port))
        nginx = started.add(
            peers.nginx(
                started.directory / "nginx", options.proxy_core, api.port, listen="http2",
                http="http2_max_concurrent_streams 128; large_client_header_buffers 8 16k;",
            )
        )
        nginx.credentials_file = ours.credentials_file
        requests = options.requests // 4

        def drive(peer):
            targets = started.directory / "targets"
            command = suite.load.command(peer, requests, print_targets=True)
            text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            targets.write_text("".join(f"http://127.0.0.1:{peer.port}{target}\n" for target in text.splitlines()))
            return h2load(options, peer, targets, requests)

        rounds = interleave("HTTP/2", [nginx, ours], options.rounds, drive)
    report.table(
        f"h2load, one connection by prior knowledge, {STREAMS} streams at once, {requests:,} requests a round; HTTP/1.1 to the API.",
        ["proxy", "µs CPU/request", "to nginx", "requests/s"],
        [
            [name, f"{rounds.median(name, 'cpu_us'):.1f}", f"{rounds.ratio(name, 'nginx'):.2f}", f"{rounds.median(name, 'rate'):,.0f}"]
            for name in ("nginx", "countersign")
        ],
    )
    report.target(11, "CPU per request of HTTP/2, to nginx", rounds.ratio("countersign", "nginx"), 1.15)
    report.numbers = {"rounds": rounds.rows}
    return report


def h2load(options, peer, targets, requests):
    command = [
        "taskset", "-c", str(options.load_core), "h2load", "-n", str(requests), "-c", "1", "-m", str(STREAMS), "-i", str(targets),
        "-H", f":authority: {peers.HOST}",
    ]
    before = machine.cpu_nanoseconds(peer.pids())
    finished = subprocess.run(command, check=True, capture_output=True, text=True)
    cpu = machine.cpu_nanoseconds(peer.pids()) - before
    good = int(re.search(r"status codes: (\d+) 2xx", finished.stdout).group(1))
    assert good == requests, finished.stdout
    return {"cpu_us": cpu / 1000 / requests, "rate": float(re.search(r"([\d.]+) req/s", finished.stdout).group(1))}
