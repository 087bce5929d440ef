"""Target 9: the cost of a request as operations, consumers, query parameters, bodies and connections grow."""

import json

from . import machine, peers, plot
from .report import Report
from .rounds import interleave


def run(suite):
    report = Report("growth", "Cost as work grows")
    for grow in (operations, consumers, parameters, bodies, connections):
        with suite.started(f"growth-{grow.__name__}") as started:
            api = started.add(peers.api(started.directory / "api", suite.options.load_core))
            grow(suite, report, started, api)
    report.note(
        "Points are medians over interleaved rounds, divided by what nginx that forwards unsigned costs in the same round (for "
        "connections, query parameters and bodies: with as many). Flat is 1.00 in the last column."
    )
    return report


def start(suite, started, api, name, **rest):
    return started.add(
        peers.Countersign(started.directory / name.replace(" ", "-"), suite.options.proxy_core, suite.binary, api.port, name=name, **rest)
    )


def start_nginx(suite, started, api, like):
    nginx = started.add(peers.nginx(started.directory / "nginx", suite.options.proxy_core, api.port))
    nginx.credentials_file = like.credentials_file
    return nginx


def requests(suite):
    return suite.options.requests // 2


def rounds_of(suite):
    return max(2, suite.options.rounds * 2 // 3)


def add(report, suite, key, title, label, points, *, base=0):
    """`points`: the size, our cost in µs, the ratio to nginx. `base` is the row with which the larger ones are compared."""
    first = points[base][2]
    report.table(
        title, [label, "µs CPU/request", "to nginx", f"to {points[base][0]:,}"],
        [[f"{size:,}", f"{cost:.2f}", f"{ratio:.2f}", f"{ratio / first:.2f}"] for size, cost, ratio in points],
    )
    worst = max(ratio for _, _, ratio in points[base:]) / first
    report.target(
        9, f"{title.lower()}, {points[base][0]:,} to {points[-1][0]:,}: dearest to the first (flat is 1; up to 1.10 counts as flat)", worst, 1.10
    )
    report.numbers[key] = points
    suite.plot(key, plot.lines(
        f"{title}: CPU per request", label, "CPU time, nginx unsigned = 1",
        [("countersign", [(size, ratio) for size, _, ratio in points]), ("nginx, unsigned", [(size, 1.0) for size, _, _ in points])],
    ))


def operations(suite, report, started, api):
    sizes = [1, 1000] if suite.options.quick else [1, 10, 100, 1000]
    ours = [start(suite, started, api, f"{size} operations", operations=size) for size in sizes]
    nginx = start_nginx(suite, started, api, ours[0])
    rounds = interleave(
        "operations", [nginx, *ours], rounds_of(suite), lambda peer: suite.load.drive(peer, requests(suite), connections=64)
    )
    add(report, suite, "operations", "Operations", "operations", [
        (size, rounds.median(peer.name, "cpu_us"), rounds.ratio(peer.name, "nginx")) for size, peer in zip(sizes, ours)
    ])


def consumers(suite, report, started, api):
    """Each consumer with an access token of its own; they take turns, so that no processor cache has room for them all."""
    sizes = [1, 10_000] if suite.options.quick else [1, 1000, 100_000, 1_000_000]
    ours = []
    for size in sizes:
        records = started.directory / f"records-{size}"
        credentials = write_records(records, size)
        # Room for every consumer and every token, and for the uneven distribution by hashing.
        peer = start(suite, started, api, f"{size} consumers", records=records, cached=3 * size + 1000)
        records.unlink()
        peer.credentials_file = started.directory / f"credentials-{size}"
        peers.write_credentials(peer.credentials_file, credentials)
        peer.turn = 0
        ours.append(peer)
        # Loads all of them into the cache.
        for first in range(0, size, 200_000):
            machine.say(f"{peer.name}: caching from {first}")
            suite.load.drive(peer, min(200_000, size - first), connections=64, first=first)
    nginx = start_nginx(suite, started, api, ours[0])

    def drive(peer):
        peer.turn = getattr(peer, "turn", 0) + requests(suite)
        return suite.load.drive(peer, requests(suite), connections=64, first=peer.turn)

    rounds = interleave("consumers", [nginx, *ours], rounds_of(suite), drive)
    add(report, suite, "consumers", "Cached consumers", "consumers in the cache, each with a token", [
        (size, rounds.median(peer.name, "cpu_us"), rounds.ratio(peer.name, "nginx")) for size, peer in zip(sizes, ours)
    ])
    resident = [(size, machine.resident_bytes(peer.pids())) for size, peer in zip(sizes, ours)]
    report.table("Memory with that many in the cache", ["consumers", "resident MiB"], [[f"{size:,}", f"{bytes_ / (1 << 20):.1f}"] for size, bytes_ in resident])
    suite.plot("consumers-memory", plot.lines(
        "Memory with cached consumers", "consumers in the cache, each with a token", "resident MiB",
        [("countersign", [(size, bytes_ / (1 << 20)) for size, bytes_ in resident])],
    ))


def write_records(file, count):
    """An export of `count` consumers, each with a token, and the credentials with which the load generator signs."""
    credentials = []
    with file.open("w") as out:
        write = lambda record: out.write(json.dumps(record) + "\n")
        write({"kind": "export", "version": 1})
        write({"kind": "user", "id": "bench", "name": "bench"})
        for number in range(count):
            one = {
                "key": f"consumer{number:07}{'k' * 16}", "secret": f"{number:07}{'s' * 25}",
                "token": f"token{number:07}{'t' * 20}", "token_secret": f"{number:07}{'u' * 25}",
            }
            credentials.append(one)
            write({
                "kind": "consumer", "key": one["key"], "secret": one["secret"], "name": f"Consumer {number}",
                "callbacks": [], "permissions": ["members.read"],
            })
            write({
                "kind": "token", "token": one["token"], "token_secret": one["token_secret"], "consumer": one["key"], "user": "bench",
                "permissions": ["members.read"],
            })
    return credentials


def parameters(suite, report, started, api):
    ours = start(suite, started, api, "countersign")
    nginx = start_nginx(suite, started, api, ours)
    points = []
    for size in [0, 50] if suite.options.quick else [0, 5, 10, 20, 30, 40, 50]:
        rounds = interleave(
            f"{size} query parameters", [nginx, ours], rounds_of(suite),
            lambda peer: suite.load.drive(peer, requests(suite), connections=64, query=size),
        )
        points.append((size, rounds.median("countersign", "cpu_us"), rounds.ratio("countersign", "nginx")))
    add(report, suite, "query-parameters", "Query parameters", "query parameters of 16 bytes", points)
    report.note("More query parameters make a longer base string: about 30 bytes of HMAC, and a place in the sorted order, for each.")


def bodies(suite, report, started, api):
    """Bodies of any kind are streamed; a form is read whole, hashed, and forwarded."""
    ours = start(suite, started, api, "countersign")
    nginx = started.add(peers.nginx(started.directory / "nginx", suite.options.proxy_core, api.port, location="proxy_request_buffering off;"))
    nginx.credentials_file = ours.credentials_file
    series, rows = {}, []
    for kind, name in (("upload", "a body that streams"), ("form", "a signed form")):
        series[name] = []
        for size in [1024, peers.BIG] if suite.options.quick else [1024, 4096, 16_384, 65_536, 262_144, peers.BIG]:
            amount = max(100, min(requests(suite) // 4, (200 << 20) // size))
            rounds = interleave(
                f"{name} of {size} bytes", [nginx, ours], rounds_of(suite),
                lambda peer: suite.load.drive(peer, amount, connections=8, path="/upload", **{kind: size}),
            )
            cost, ratio = rounds.median("countersign", "cpu_us"), rounds.ratio("countersign", "nginx")
            extra = (cost - rounds.median("nginx", "cpu_us")) * 1000 / size
            series[name].append((size, ratio))
            rows.append([name, f"{size:,}", f"{cost:.1f}", f"{ratio:.2f}", f"{extra:.2f}"])
    report.table("Bodies", ["", "bytes", "µs CPU/request", "to nginx", "ns a byte above nginx"], rows)
    report.numbers["bodies"] = series
    report.note(
        "A signed form costs the hash over it and its percent-coding, byte by byte, which nginx does not do; a body that is no form streams."
    )
    suite.plot("bodies", plot.lines(
        "Bodies: CPU per request", "bytes sent up", "CPU time, nginx with the same body = 1",
        [*series.items(), ("nginx", [(size, 1.0) for size, _ in series["a signed form"]])],
    ))


def connections(suite, report, started, api):
    ours = start(suite, started, api, "countersign")
    nginx = start_nginx(suite, started, api, ours)
    most = machine.most_connections()
    points = []
    sizes = [1, 64, 1000, most] if suite.options.quick else [1, 8, 64, 250, 1000, 3000, most]
    for size in sizes:
        # With one connection each request waits for the one before; more than 64 at once would measure the API.
        amount = max(requests(suite), 3 * size) if size >= 64 else requests(suite) // 4
        rounds = interleave(
            f"{size} connections", [nginx, ours], rounds_of(suite),
            lambda peer: suite.load.drive(peer, amount, connections=size, in_flight=64),
        )
        points.append((size, rounds.median("countersign", "cpu_us"), rounds.ratio("countersign", "nginx")))
    add(
        report, suite, "connections", "Connections", "kept connections, at most 64 requests at once", points, base=sizes.index(64),
    )
    report.note("Below 64 connections fewer requests come at once, so that each look for events finds fewer: for nginx as well.")
