"""Target 1: CPU time of the proxy per request, every check on, compared with peers that check nothing or check in Lua."""

from . import peers, proof
from .report import Report
from .rounds import interleave


def run(suite):
    report = Report("cost", "CPU time per request")
    options = suite.options
    # Many short rounds: other load on the machine changes by the second.
    count, requests = 2 * options.rounds, options.requests // 2
    with suite.started("cost") as started:
        api = started.add(peers.api(started.directory / "api", options.load_core))
        rows = on_a_socket(started, api, options, suite.binary)
        if options.before:
            rows.append((False, started.add(peers.Countersign(
                started.directory / "before", options.proxy_core, options.before, api.port, name="countersign before",
            ))))
        for logged in (False, True) if options.log else (False,):
            rows += [(logged, peer) for peer in start(suite, started, api, logged)]
        everyone = [peer for _, peer in rows]
        for peer in everyone:
            suite.load.drive(peer, 5000, connections=64)
            if peer.name.startswith("countersign"):
                proof.counts_all(peer, suite.load, 5000)
        rounds = interleave(
            "CPU µs a request", everyone, count, lambda peer: suite.load.drive(peer, requests, connections=64),
        )
    table = []
    for logged, peer in rows:
        base = "nginx, access log" if logged else "nginx, Unix socket" if "socket" in peer.name else "nginx"
        low, high = rounds.spread(peer.name, base)
        table.append([
            peer.name, f"{rounds.median(peer.name, 'cpu_us'):.2f}", f"{rounds.ratio(peer.name, base):.2f}",
            f"{low:.2f} to {high:.2f}", f"{rounds.median(peer.name, 'rate'):.0f}",
            f"{rounds.median(peer.name, 'used'):.0%}", f"{rounds.median(peer.name, 'p50_us'):.0f}",
            f"{rounds.median(peer.name, 'p99_us'):.0f}",
        ])
    report.table(
        f"64 kept connections, {requests:,} requests a round, {count} rounds, medians. The ratio is to nginx that "
        "forwards unsigned, with or without access log as the row itself; half of the rounds lie in the range beside it.",
        ["proxy", "µs CPU/request", "to nginx", "half of the rounds", "requests/s", "core used", "p50 µs", "p99 µs"], table,
    )
    ratio = rounds.ratio("countersign", "nginx")
    report.target(1, "full enforcement to nginx unsigned", ratio, 1.22)
    report.target(1, "full enforcement to nginx unsigned, the goal", ratio, 1.15)
    report.target(1, "full enforcement to nginx with the check in Lua", rounds.ratio("countersign", "nginx, Lua check"), 1 / 3)
    if options.log:
        report.target(
            1, "access log on: ratio to nginx with its own, less the ratio without",
            rounds.ratio("countersign, access log", "nginx, access log") - ratio, 0.10,
        )
        report.target(
            1, "access log on: ratio to nginx without log, less the ratio without", rounds.ratio("countersign, access log", "nginx") - ratio, 0.10
        )
    report.numbers = {"rounds": rounds.rows}
    return report


def on_a_socket(started, api, options, binary):
    """nginx and countersign in front of the API's Unix socket."""
    ours = started.add(peers.Countersign(
        started.directory / "socket", options.proxy_core, binary, api.socket, name="countersign, Unix socket",
    ))
    nginx = started.add(peers.nginx(
        started.directory / "nginx-socket", options.proxy_core, api.socket, name="nginx, Unix socket",
    ))
    nginx.credentials_file = ours.credentials_file
    proof.forwards(nginx, ours)
    proof.enforces(ours, ours)
    return [(False, nginx), (False, ours)]


def start(suite, started, api, logged):
    options, suffix = suite.options, ", access log" if logged else ""
    place = started.directory
    ours = started.add(peers.Countersign(
        place / f"countersign{suffix}".replace(", ", "-").replace(" ", "-"), options.proxy_core, suite.binary, api.port,
        name="countersign" + suffix, logged=logged,
    ))
    found = [
        peers.nginx(place / f"nginx-{logged}", options.proxy_core, api.port, name="nginx" + suffix, logged=logged),
        peers.Haproxy(place / f"haproxy-{logged}", options.proxy_core, api.port, name="HAProxy" + suffix, logged=logged),
        peers.nginx_lua(
            place / f"lua-{logged}", options.proxy_core, api.port, ours.credentials, name="nginx, Lua check" + suffix, logged=logged
        ),
    ]
    for peer in found:
        started.add(peer)
        peer.credentials_file = ours.credentials_file
        if "Lua" in peer.name:
            proof.enforces(peer, ours)
        else:
            proof.forwards(peer, ours)
    proof.enforces(ours, ours)
    proof.permissions(ours)
    return [*found, ours]
