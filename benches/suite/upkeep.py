"""How long the removal of expired access tokens holds the locks of each store, while requests write their last uses."""

import re
import statistics
import time

from . import machine, peers
from .report import Report
from .stores import write_records

# Expired this long ago; they are removed after 30 days.
EXPIRED = 60 * 86_400
# Others that want to write should not wait longer, in milliseconds.
LIMIT = 50
UNITS = {"ns": 1e-6, "µs": 1e-3, "ms": 1.0, "s": 1e3}
# Signed requests a second beside the removal.
RATE = 200


def run(suite):
    report = Report("upkeep", "Removal of expired tokens")
    tokens = 5_000 if suite.options.quick else min(suite.options.tokens)
    rows = []
    for name in suite.options.stores:
        with suite.started("upkeep") as started:
            api = started.add(peers.api(started.directory / "api", None))
            export = started.directory / "records"
            write_records(export, tokens // 10, tokens)
            expire(export)
            engine = None if name == "SQLite" else started.add(peers.Postgres(started.directory / "engine", None))
            place = started.directory / "ours"
            store = engine.store if engine else f'[store]\nurl = "{place}/countersign.db"'
            # The log of each batch; requests use tokens that are registered after the import.
            ours = started.add(peers.Countersign(
                place, None, suite.binary, api.port, name=name, records=export, logs="info,countersign::records::store::sql::purge=debug",
                store=f'[nonce]\nscope = "local"\npath = "{place}/nonces"\n{store}',
            ))
            ours.credentials_file = started.directory / "used"
            peers.write_credentials(ours.credentials_file, [ours.register("used", permission="members.read")])
            batches = wait_for_removal(suite, ours, tokens)
        held = sorted(batch["took"] for batch in batches)
        statements = [batch["statements"] for batch in batches]
        report.table(name, ["", "measured"], [
            ["access tokens removed", f"{sum(batch['rows'] for batch in batches):,}"],
            ["transactions", f"{len(batches):,}"],
            ["rows of a transaction, median", f"{statistics.median(batch['rows'] for batch in batches):,.0f}"],
            ["statements and commit of a transaction, median ms", f"{statistics.median(statements):.1f}, "
             f"{statistics.median(batch['took'] - batch['statements'] for batch in batches):.1f}"],
            ["locks held, median / p99 / longest ms", f"{statistics.median(held):.1f} / {held[len(held) * 99 // 100]:.1f} / {held[-1]:.1f}"],
            [f"transactions of at most {LIMIT} ms", share(held)],
            [f"transactions whose statements took at most {LIMIT} ms", share(statements)],
        ])
        report.target(16, f"{name}: 99 of 100 removals hold locks for at most", held[len(held) * 99 // 100], LIMIT, unit=" ms")
        report.numbers[name] = batches
    return report


def share(times):
    return f"{sum(one <= LIMIT for one in times) / len(times):.1%}"


def expire(export):
    """Gives each token of an export a time of expiry."""
    ended = int(time.time()) - EXPIRED
    whole = export.with_name("whole")
    export.rename(whole)
    with whole.open() as lines, export.open("w") as out:
        for number, line in enumerate(lines):
            if line.startswith('{"kind":"token"'):
                # Different times, as in operation.
                line = f'{line.rstrip()[:-1]},"expires_at":{ended - number % 86_400}}}\n'
            out.write(line)
    whole.unlink()


def wait_for_removal(suite, ours, tokens):
    """The batches of the removal that `serve` begins at its start."""
    while True:
        suite.load.drive(ours, 400, connections=8, rate=RATE)
        batches = read_batches(ours.directory / "log")
        if sum(batch["rows"] for batch in batches) >= tokens:
            return batches
        machine.say(f"{ours.name}: {sum(batch['rows'] for batch in batches):,} of {tokens:,} removed")


BATCH = re.compile(r"removed a batch rows=(?P<rows>\d+) statements=(?P<statements>\S+) took=(?P<took>\S+)")


def read_batches(log):
    found = (match.groupdict() for match in BATCH.finditer(log.read_text()))
    return [
        {"rows": int(one["rows"]), "statements": milliseconds(one["statements"]), "took": milliseconds(one["took"])}
        for one in found if one["rows"] != "0"
    ]


def milliseconds(text):
    number, unit = re.fullmatch(r"([\d.]+)(\D+)", text).groups()
    return float(number) * UNITS[unit]
