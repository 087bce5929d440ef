"""Target 6: latency at half of nginx's saturation, in an open loop; and the gain of a second worker."""

from . import peers
from .report import Report
from .rounds import interleave


def run(suite):
    report = Report("latency", "Latency and workers")
    options = suite.options
    with suite.started("latency") as started:
        api = started.add(peers.api(started.directory / "api", options.load_core))
        ours = started.add(peers.Countersign(started.directory / "ours", options.proxy_core, suite.binary, api.port))
        nginx = started.add(peers.nginx(started.directory / "nginx", options.proxy_core, api.port))
        nginx.credentials_file = ours.credentials_file
        pair = [nginx, ours]
        if options.before:
            pair.append(started.add(peers.Countersign(
                started.directory / "before", options.proxy_core, options.before, api.port, name="countersign before",
            )))
        closed = interleave("saturation", pair, 3, lambda peer: suite.load.drive(peer, options.requests, connections=64))
        saturation = closed.median("nginx", "rate")
        rate = sustained(suite, nginx, saturation / 2)
        # One second a round and many of them: other load on the machine affects a tail as much as the proxy does.
        seconds, count = 1, 4 * options.rounds
        rounds = interleave(
            f"open loop, {rate:.0f} requests a second", pair, count,
            lambda peer: suite.load.drive(peer, int(rate * seconds), connections=64, rate=rate),
        )
        report.table(
            f"Open loop, {rate:,.0f} requests a second ({rate / saturation:.0%} of what nginx does in a closed loop), {count} rounds of {seconds} s; medians of "
            "the rounds. A latency counts from when the request was due. The quarter of the rounds that others disturbed least is told beside.",
            ["proxy", "p50 µs", "p90 µs", "p99 µs", "p99.9 µs", "p99 µs, best quarter", "p99 to nginx", "CPU to nginx"],
            [
                [peer.name, *(f"{rounds.median(peer.name, key):,.0f}" for key in ("p50_us", "p90_us", "p99_us", "p999_us")),
                 f"{rounds.low(peer.name, 'p99_us'):,.0f}", f"{rounds.ratio(peer.name, 'nginx', 'p99_us'):.2f}", f"{rounds.ratio(peer.name, 'nginx'):.2f}"]
                for peer in pair
            ],
        )
        report.target(6, f"p99 at {rate / saturation:.0%} of nginx's saturation, to nginx", rounds.ratio("countersign", "nginx", "p99_us"), 1.1)
        report.target(6, "CPU per request at that rate, to nginx", rounds.ratio("countersign", "nginx"), 1.1)
        report.numbers = {"rate": rate, "rounds": rounds.rows}
        two_workers(suite, started, api, report)
    return report


def sustained(suite, nginx, rate):
    """`rate`, or less where the core of the load generator and the API cannot keep up: then their queue would be measured."""
    for _ in range(6):
        if suite.load.drive(nginx, int(rate), connections=64, rate=rate)["p50_us"] < 500:
            break
        rate *= 0.8
    return rate


def two_workers(suite, started, api, report):
    """Throughput of two workers to one; this takes a core for each and one for the load."""
    options = suite.options
    cores = suite.machine["cores"]
    if cores >= 4:
        core = ",".join(str(core) for core in range(cores) if core != options.load_core)
    else:
        # Without a core of its own the load generator takes CPU time from the workers.
        core = None
    one = started.add(peers.Countersign(started.directory / "one", core, suite.binary, api.port, name="1 worker"))
    two = started.add(peers.Countersign(started.directory / "two", core, suite.binary, api.port, name="2 workers", workers=2))
    rounds = interleave("workers", [one, two], options.rounds, lambda peer: suite.load.drive(peer, options.requests, connections=64))
    ratio = rounds.ratio("2 workers", "1 worker", "rate")
    report.table(
        "", ["", "requests/s, to one worker", "CPU per request, to one worker", "cores used"],
        [
            [name, f"{rounds.ratio(name, '1 worker', 'rate'):.2f}", f"{rounds.ratio(name, '1 worker'):.2f}", f"{rounds.median(name, 'used'):.2f}"]
            for name in ("1 worker", "2 workers")
        ],
    )
    if cores >= 4:
        report.target(6, "throughput of two workers to one", ratio, 1.9, at_least=True)
    else:
        report.note(
            f"This machine has {cores} cores, and the load generator and the API need one: the throughput of two workers says nothing here. "
            "What can be seen is the CPU time per request, which is what would keep two workers from doing twice the work."
        )
    report.numbers["workers"] = rounds.rows
