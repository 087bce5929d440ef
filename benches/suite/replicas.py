"""The throughput and the cost of one to three replicas that share their nonces; a table and a plot of the part `growth`."""

import threading

from . import machine, peers, plot
from .fit import fit


def grow(suite, report, started, api):
    """Up to three processes with their nonces in one Redis, each with a load generator of its own, all on all cores."""
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
    cost = fit([(number, cpu / found[0][2]) for number, _, cpu in found])
    report.table(
        f"CPU time of a request by replicas: {cost.text('replicas')}. Throughput of replicas with their nonces in one Redis. All processes, the load generators, the API and the engines share {suite.machine['cores']} cores.",
        ["replicas", "requests/s", "µs CPU/request of all replicas"],
        [[number, f"{rate:,.0f}", f"{cpu:.1f}"] for number, rate, cpu in found],
    )
    report.numbers["replicas"] = {"points": found, "fit": cost.text("replicas")}
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
