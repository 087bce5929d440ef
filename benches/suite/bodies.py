"""Target 8: CPU time per byte of large bodies, and signed forms in the whole proxy."""

from . import peers
from .report import Report
from .rounds import interleave


def run(suite):
    report = Report("bodies", "Bodies")
    options = suite.options
    count = 200 if options.quick else 500
    with suite.started("bodies") as started:
        api = started.add(peers.api(started.directory / "api", options.load_core))
        place = started.directory
        ours = started.add(peers.Countersign(place / "ours", options.proxy_core, suite.binary, api.port))
        streaming = "proxy_request_buffering off;"
        nginx = started.add(peers.nginx(place / "nginx", options.proxy_core, api.port, location=streaming))
        unbuffered = started.add(
            peers.nginx(
                place / "unbuffered", options.proxy_core, api.port, name="nginx, proxy_buffering off",
                location=f"{streaming} proxy_buffering off;",
            )
        )
        everyone = [nginx, unbuffered, ours]
        for peer in everyone:
            peer.credentials_file = ours.credentials_file
        rows = []
        for name, flags in {
            "1 MiB down": {"path": "/big"},
            "1 MiB up": {"path": "/upload", "upload": peers.BIG},
            "form of 16 KiB up": {"path": "/upload", "form": 16_384},
        }.items():
            requests = count * 5 if "form" in name else count
            for peer in everyone:
                suite.load.drive(peer, requests // 5, connections=8, **flags)
            rounds = interleave(
                name, everyone, options.rounds, lambda peer: suite.load.drive(peer, requests, connections=8, **flags)
            )
            size = 16_384 if "form" in name else peers.BIG
            for peer in everyone:
                rows.append([
                    name, peer.name, f"{rounds.median(peer.name, 'cpu_us') * 1000 / size:.3f}", f"{rounds.ratio(peer.name, 'nginx'):.2f}",
                    f"{rounds.ratio(peer.name, 'nginx, proxy_buffering off'):.2f}",
                ])
            report.numbers[name] = rounds.rows
            if "form" not in name:
                report.target(8, f"CPU per byte, {name}, to nginx", rounds.ratio("countersign", "nginx"), 0.5)
    report.table(
        "8 kept connections. nginx streams uploads (proxy_request_buffering off), and buffers answers unless told; a form is verified by "
        "countersign alone.",
        ["body", "proxy", "ns CPU/byte", "to nginx", "to nginx, proxy_buffering off"], rows,
    )
    return report
