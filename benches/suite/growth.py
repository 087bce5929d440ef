"""Target 9: the cost of a request as operations, consumers, query parameters, bodies, connections, replicas and rejections grow."""

import json
import time

from . import machine, peers, plot, replicas, steps
from .fit import FLAT, fit
from .report import Report
from .rounds import interleave

# The rejected calls that countersign keeps of each consumer.
KEPT_REJECTIONS = 20


def run(suite):
    report = Report("growth", "Cost as work grows")
    took = []
    for name in suite.options.sizes or SIZES:
        began = time.monotonic()
        with suite.started(f"growth-{name}") as started:
            api = started.add(peers.api(started.directory / "api", suite.options.load_core))
            SIZES[name](suite, report, started, api)
        took.append([name, f"{(time.monotonic() - began) / 60:.1f}"])
        machine.say(f"{name}: {took[-1][1]} minutes")
    report.table("Time of the measurement", ["", "minutes"], took)
    report.note(
        "Instructions are those of the worker's thread in user space, stepped one by one, with 16 connections unless a table says otherwise. CPU times are "
        "medians over interleaved rounds; the ratio is to nginx that forwards as much unsigned, in the same round. The last column compares "
        "the instructions of each size with the first one, or the ratios where those of a size are not counted. The fit is the line or the logarithm that leaves the smaller error."
    )
    return report


def stepped(suite, peer, **flags):
    """Instructions of a request: of fewer requests than the part `instructions` steps through, and once, which leaves the count exact to some per cent."""
    began = time.monotonic()
    found = steps.per_request(suite, peer, requests=8 if suite.options.quick else 16, times=1, **flags)
    machine.say(f"{peer.name}: {'not counted' if found is None else f'{found:,.0f} instructions'} in {time.monotonic() - began:.0f} s")
    return found


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


class Point:
    """The cost at one size."""

    def __init__(self, size, rounds, name, instructions):
        self.size, self.instructions = size, instructions
        self.cpu, self.ratio = rounds.median(name, "cpu_us"), rounds.ratio(name, "nginx")

    def cost(self, counted):
        return self.instructions if counted else self.ratio


def add(report, suite, key, title, label, points, *, base=0):
    """The table, the fit and the plot of a size. `base` is the row with which the larger ones are compared."""
    first = points[base]
    compared = points[base:]
    counted = all(point.instructions for point in points)
    relative = [(point.size, point.cost(counted) / first.cost(counted)) for point in points]
    found = fit(relative[base:])
    report.table(
        f"{title}: {found.text(label)}.", [label, "instructions", "µs CPU/request", "to nginx", f"to {first.size:,}"],
        [
            [
                f"{point.size:,}", f"{point.instructions:,.0f}" if point.instructions else "not counted", f"{point.cpu:.2f}", f"{point.ratio:.2f}",
                f"{cost:.3f}",
            ]
            for point, (_, cost) in zip(points, relative)
        ],
    )
    worst = max(cost for _, cost in relative[base:])
    report.target(
        9, f"{title.lower()}, {first.size:,} to {points[-1].size:,}: dearest to the first (flat is 1; up to {FLAT:.2f} counts as flat)", worst, FLAT
    )
    report.numbers[key] = {
        "points": [[point.size, point.instructions, point.cpu, point.ratio] for point in points], "fit": found.text(label),
    }
    series = [("CPU time, to nginx's", [(point.size, point.ratio / first.ratio) for point in points])]
    if counted:
        series.insert(0, ("instructions", [(point.size, point.instructions / first.instructions) for point in points]))
    series.append(("fit", [(point.size, found.at(point.size)) for point in compared]))
    suite.plot(key, plot.lines(f"{title}: cost of a request", label, f"cost with {first.size:,} = 1", series))


def operations(suite, report, started, api):
    sizes = [1, 1000] if suite.options.quick else [1, 10, 100, 1000, 10_000]
    ours = [start(suite, started, api, f"{size} operations", operations=size) for size in sizes]
    nginx = start_nginx(suite, started, api, ours[0])
    rounds = interleave(
        "operations", [nginx, *ours], rounds_of(suite), lambda peer: suite.load.drive(peer, requests(suite), connections=64)
    )
    add(report, suite, "operations", "Operations", "operations", [
        Point(size, rounds, peer.name, stepped(suite, peer)) for size, peer in zip(sizes, ours)
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
        peer.idle = machine.resident_bytes(peer.pids())
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
        Point(size, rounds, peer.name, stepped(suite, peer)) for size, peer in zip(sizes, ours)
    ])
    resident = [(size, machine.resident_bytes(peer.pids()), peer.idle) for size, peer in zip(sizes, ours)]
    report.table(
        "Memory with that many in the cache", ["consumers", "resident MiB", "bytes each, above the idle process"],
        [[f"{size:,}", f"{bytes_ / (1 << 20):.1f}", f"{(bytes_ - idle) / size:,.0f}"] for size, bytes_, idle in resident],
    )
    report.numbers["consumers-memory"] = resident
    suite.plot("consumers-memory", plot.lines(
        "Memory with cached consumers", "consumers in the cache, each with a token", "resident MiB",
        [("countersign", [(size, bytes_ / (1 << 20)) for size, bytes_, _ in resident])],
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
        points.append(Point(size, rounds, "countersign", stepped(suite, ours, query=size)))
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
        # No instructions: while one steps, all connections are idle for long, and each of them releases its buffers.
        points.append(Point(size, rounds, "countersign", None))
    add(
        report, suite, "connections", "Connections", "kept connections, at most 64 requests at once", points, base=sizes.index(64),
    )
    report.note("Below 64 connections fewer requests come at once, so that each look for events finds fewer: for nginx as well.")
    if most < 20_000:
        report.note(f"{most:,} connections are the most that the descriptors of this machine allow (two for each, `ulimit -Hn`).")


def rejections(suite, report, started, api):
    """Requests with a wrong signature, of consumers that each have as many rejected calls as are kept; they take turns."""
    sizes = [1, 1000] if suite.options.quick else [1, 100, 1000, 10_000]
    records = started.directory / "records"
    credentials = [one | {"token_secret": "wrong"} for one in write_records(records, sizes[-1])]
    ours = start(suite, started, api, "countersign", records=records)
    nginx = started.add(peers.nginx(started.directory / "nginx", suite.options.proxy_core, api.port))
    points = []
    for size in sizes:
        file = started.directory / f"credentials-{size}"
        peers.write_credentials(file, credentials[:size])
        ours.credentials_file = nginx.credentials_file = file
        suite.load.drive(ours, KEPT_REJECTIONS * size, connections=64, rejected=True)
        rounds = interleave(
            f"rejected calls of {size} consumers", [nginx, ours], rounds_of(suite),
            lambda peer: suite.load.drive(peer, requests(suite), connections=64, rejected=peer is ours),
        )
        # No instructions: only some rejected calls of a second are compared with the usual mistakes, and all if they come as slowly as they are stepped through.
        points.append(Point(size, rounds, "countersign", None))
    add(report, suite, "rejections", "Rejected requests", f"consumers with {KEPT_REJECTIONS} rejected calls each", points)
    report.note(
        "A rejected request has a wrong token secret: the signatures of some in a second are compared with that of every usual mistake. nginx forwards the same request."
    )


# The sizes that grow, by name.
SIZES = {
    "operations": operations, "consumers": consumers, "parameters": parameters, "bodies": bodies, "connections": connections,
    "rejections": rejections, "replicas": replicas.grow,
}
