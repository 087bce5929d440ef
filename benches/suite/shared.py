"""Shared nonces: the cost of a request when all replicas use one engine, and the gain of more replicas."""

import threading

from . import machine, peers, plot
from .report import Report
from .rounds import interleave

# The rate that the slowest engine can serve while it shares one core with the load generator and the API.
RATE = 2_500


def run(suite):
    report = Report("shared", "Shared nonces")
    options = suite.options
    with suite.started("shared") as started:
        place, core = started.directory, options.load_core
        api = started.add(peers.api(place / "api", core))
        beside = started.add(peers.Redis(place / "redis-beside", core))
        postgres = started.add(peers.Postgres(place / "postgres", core))
        pair = started.add(peers.Postgres(place / "postgres-beside", core))

        def ours(name, store=None, **rest):
            return started.add(peers.Countersign(
                place / name.replace(" ", "-"), options.proxy_core, suite.binary, api.port, name=name, store=store, **rest
            ))

        local = ours("local")
        rows = [
            (local, []),
            (ours("PostgreSQL", postgres.store), [postgres]),
            (ours("PostgreSQL, nonces in Redis", f'[nonce]\nurl = "{beside.url}"\n{pair.store}'), [pair, beside]),
        ]
        engines = {peer.name: found for peer, found in rows}
        everyone = [peer for peer, _ in rows]

        def drive(peer, count, **flags):
            pids = [pid for engine in engines[peer.name] for pid in engine.pids()]
            before = machine.cpu_nanoseconds(pids)
            told = suite.load.drive(peer, count, connections=64, **flags)
            told["engine_us"] = (machine.cpu_nanoseconds(pids) - before) / 1000 / count
            return told

        for peer in everyone:
            drive(peer, 2_000)
        count = max(3, options.rounds // 2)
        rate = interleave(f"{RATE} requests a second", everyone, count, lambda peer: drive(peer, 2 * RATE, rate=RATE))
        closed = interleave("closed loop", everyone, count, lambda peer: drive(peer, options.requests // 4))
        for rounds, caption in (
            (rate, f"{RATE:,} requests a second over 64 connections, {count} rounds of 2 s"),
            (closed, f"64 requests under way all the time, {count} rounds"),
        ):
            report.table(
                f"{caption}; medians. The engine shares a core with the load generator and the API; the proxy has the other one.",
                ["nonces in", "µs CPU/request", "to local", "half of the rounds", "engine's µs CPU/request", "requests/s", "p50 µs", "p99 µs"],
                [row(rounds, peer.name) for peer in everyone],
            )
        for rounds, caption, limit in ((closed, "64 requests under way", 1.25), (rate, f"{RATE:,} requests a second", 1.5)):
            ratio = rounds.ratio("PostgreSQL, nonces in Redis", "local")
            report.target(12, f"CPU per request with nonces in Redis, to local, {caption}", ratio, limit)
        report.numbers = {"rate": rate.rows, "closed": closed.rows}
        replicas(suite, report, started, api)
    return report


def row(rounds, name):
    low, high = rounds.spread(name, "local")
    return [
        name, f"{rounds.median(name, 'cpu_us'):.1f}", f"{rounds.ratio(name, 'local'):.2f}", f"{low:.2f} to {high:.2f}",
        f"{rounds.median(name, 'engine_us'):.1f}", f"{rounds.median(name, 'rate'):,.0f}",
        f"{rounds.median(name, 'p50_us'):,.0f}", f"{rounds.median(name, 'p99_us'):,.0f}",
    ]


def replicas(suite, report, started, api):
    """One to three processes with their nonces in one Redis, each with a load generator of its own, all on all cores."""
    options, found = suite.options, []
    redis = started.add(peers.Redis(started.directory / "redis-replicas", None))
    postgres = started.add(peers.Postgres(started.directory / "postgres-replicas", None))
    store = f'[nonce]\nurl = "{redis.url}"\n{postgres.store}'
    first = None
    running = []
    for number in (1, 2, 3):
        first_or_other = started.add(peers.Countersign(
            started.directory / f"replica-{number}", None, suite.binary, api.port, name=f"replica {number}", store=store, like=first,
        ))
        first = first or first_or_other
        running.append(first_or_other)
        rates = []
        for _ in range(3):
            rates.append(together(suite, running, options.requests // 4))
        rates.sort()
        found.append((number, *rates[len(rates) // 2]))
        machine.say(f"{number} replicas: {found[-1][1]:.0f} requests a second")
    report.table(
        f"Throughput of replicas with their nonces in one Redis. All processes, the load generators, the API and the engines share {suite.machine['cores']} cores.",
        ["replicas", "requests/s", "µs CPU/request of all replicas"],
        [[number, f"{rate:,.0f}", f"{cpu:.1f}"] for number, rate, cpu in found],
    )
    report.numbers["replicas"] = found
    suite.plot("replicas", plot.lines(
        f"Throughput of replicas with nonces in one Redis, {suite.machine['cores']} cores for all", "replicas", "requests/s",
        [("countersign", [(number, rate) for number, rate, _ in found])], logarithmic=False,
    ))


def together(suite, running, count):
    """Requests a second of all together, and their CPU time for each request."""
    share, told = count // len(running), []
    threads = [threading.Thread(target=lambda peer=peer: told.append(suite.load.drive(peer, share, connections=64))) for peer in running]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(one["rate"] for one in told), sum(one["cpu_us"] for one in told) / len(told)
