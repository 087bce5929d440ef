"""Shared nonces: the cost of a request when all replicas use one engine."""

from . import machine, peers
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
    return report


def row(rounds, name):
    low, high = rounds.spread(name, "local")
    return [
        name, f"{rounds.median(name, 'cpu_us'):.1f}", f"{rounds.ratio(name, 'local'):.2f}", f"{low:.2f} to {high:.2f}",
        f"{rounds.median(name, 'engine_us'):.1f}", f"{rounds.median(name, 'rate'):,.0f}",
        f"{rounds.median(name, 'p50_us'):,.0f}", f"{rounds.median(name, 'p99_us'):,.0f}",
    ]
