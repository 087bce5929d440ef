"""Target 7: TLS terminated at the proxy, the same version, cipher and curve for both."""

from . import machine, peers
from .report import Report
from .rounds import interleave


def run(suite):
    report = Report("tls", "TLS")
    options = suite.options
    requests = options.requests // 2
    handshakes = 1000 if options.quick else 2000
    rows = []
    with suite.started("tls") as started:
        api = started.add(peers.api(started.directory / "api", options.load_core))
        for kind in ("ecdsa", "rsa"):
            tls = machine.certificate(started.directory, kind)
            place = started.directory / kind
            ours = started.add(peers.Countersign(place / "ours", options.proxy_core, suite.binary, api.port, tls=tls))
            nginx = started.add(peers.nginx(place / "nginx", options.proxy_core, api.port, tls=tls))
            nginx.credentials_file, nginx.tls = ours.credentials_file, True
            pair = [nginx, ours]
            name = {"ecdsa": "ECDSA P-256", "rsa": "RSA-2048"}[kind]
            for peer in pair:
                suite.load.drive(peer, 2000, connections=64)
            if kind == "ecdsa":
                kept = interleave("kept", pair, options.rounds, lambda peer: suite.load.drive(peer, requests, connections=64))
                rows += table_rows("kept connections, a request", pair, kept)
                report.target(7, "CPU per request on kept connections, to nginx", kept.ratio("countersign", "nginx"), 0.95)
                report.numbers["kept"] = kept.rows
            fresh = interleave(
                f"handshakes, {name}", pair, options.rounds, lambda peer: suite.load.drive(peer, handshakes, connections=32, fresh=True)
            )
            rows += table_rows(f"full handshake and one request, {name}", pair, fresh)
            report.numbers[f"handshakes {kind}"] = fresh.rows
            report.target(7, f"CPU per full handshake and one request, {name}, to nginx", fresh.ratio("countersign", "nginx"), 0.9)
    report.table(
        "TLS 1.3, X25519, TLS_AES_128_GCM_SHA256, no resumption. countersign verifies, nginx does not.",
        ["", "proxy", "µs CPU", "to nginx", "a second of one core"], rows,
    )
    return report


def table_rows(what, pair, rounds):
    return [
        [what, peer.name, f"{rounds.median(peer.name, 'cpu_us'):.1f}", f"{rounds.ratio(peer.name, 'nginx'):.2f}",
         f"{1e6 / rounds.median(peer.name, 'cpu_us'):,.0f}"]
        for peer in pair
    ]
