"""A million consumers and ten million tokens in each store: import, start, lookups, memory, export."""

import os
import subprocess
import sys
import time

from . import machine, peers, plot
from .report import Report

# Tokens that are looked up: first all of them cold, then all of them again.
LOOKED_UP = 20_000
# Seconds.
IMPORT_LIMIT = {"SQLite": 60, "PostgreSQL": 120}


def run(suite):
    report = Report("stores", "Large stores")
    sizes = [1_000, 10_000] if suite.options.quick else suite.options.tokens
    rows, grown = [], {}
    for tokens in sizes:
        with suite.started("stores") as started:
            api = started.add(peers.api(started.directory / "api", None))
            export = started.directory / "records"
            credentials = write_records(export, tokens // 10 or 1, tokens)
            for name in suite.options.stores:
                machine.say(f"{tokens:,} tokens in {name}")
                with suite.started("one-store") as one:
                    found = measure(suite, one, api, name, export, credentials)
                rows.append([name, f"{tokens:,}", *found["row"]])
                grown.setdefault(name, []).append((tokens, found["import"][1]))
                report.numbers[f"{name} {tokens}"] = found
                if tokens == 1_000_000:
                    report.target(14, f"import of a million tokens into {name}", found["import"][0], IMPORT_LIMIT[name], unit=" s")
    report.table(
        "Tokens, and a tenth as many consumers. Memory is the highest of the command, the engine's own apart. Cold: first requests with "
        f"{LOOKED_UP:,} tokens, one connection; warm: the same ones again.",
        ["store", "tokens", "import", "its CPU", "its MiB", "start", "MiB then", "cold p50 / p99 µs", "warm p50 / p99 µs", "export", "its CPU", "its MiB", "engine's MiB"],
        rows,
    )
    if len(sizes) > 1:
        suite.plot("import-memory", plot.lines(
            "Memory of an import", "tokens, and a tenth as many consumers", "MiB", list(grown.items()),
        ))
    return report


def measure(suite, started, api, name, export, credentials):
    place = started.directory
    engine = None
    if name != "SQLite":
        engine = started.add(peers.Postgres(place / "engine", None))
    config = place / "config.toml"
    store = engine.store if engine else f'[store]\nurl = "{place}/countersign.db"'
    config.write_text(f'[upstream]\napi_url = "http://127.0.0.1:{api.port}"\n{store}\n')
    imported = timed([str(suite.binary), "import", str(export), "--config", str(config)])
    scope = f'[nonce]\nscope = "local"\npath = "{place}/nonces"\n{store}'
    ours = started.add(peers.Countersign(
        place / "ours", None, suite.binary, api.port, name=name, store=scope, like=Like(credentials),
    ))
    idle = machine.resident_bytes(ours.pids())
    looked_up = min(LOOKED_UP, sum(1 for _ in open(credentials)))
    drive = lambda: suite.load.drive(ours, looked_up, connections=1)
    cold, warm = drive(), drive()
    ours.stop()
    exported = timed([str(suite.binary), "export", str(place / "exported"), "--config", str(config)])
    size = f"{machine.resident_bytes(engine.pids(), 'Pss') / (1 << 20):,.0f}" if engine else "none"
    pair = lambda one: f"{one['p50_us']:,.0f} / {one['p99_us']:,.0f}"
    return {
        "row": [
            f"{imported[0]:.0f} s", f"{imported[2]:.1f} s", f"{imported[1]:.0f}", f"{ours.started_in * 1000:.0f} ms", f"{idle / (1 << 20):.0f}",
            pair(cold), pair(warm), f"{exported[0]:.0f} s", f"{exported[2]:.1f} s", f"{exported[1]:.0f}", size,
        ],
        "export_mib": exported[1], "import": imported, "export": exported, "cold": cold, "warm": warm,
    }


class Like:
    """Credentials that are already in the store."""

    def __init__(self, file):
        self.credentials, self.credentials_file = [], file


def timed(command):
    """The seconds, the peak memory in MiB and the seconds of CPU time of a command."""
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    told = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = status
    if status != 0:
        sys.exit(f"{' '.join(command)}: {told.decode()}")
    return time.monotonic() - began, usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime


def write_records(file, consumers, tokens):
    """An export, and a file of credentials with which the load generator signs for some of its tokens."""
    credentials = file.with_name("credentials")
    with file.open("w", buffering=1 << 20) as out, credentials.open("w") as some:
        out.write('{"kind":"export","version":1}\n{"kind":"user","id":"bench","name":"bench"}\n')
        for number in range(consumers):
            out.write(
                f'{{"kind":"consumer","key":"consumer{number:08}kkkkkkkkkkkkkkkk","secret":"{number:08}ssssssssssssssssssssssss",'
                f'"name":"Consumer {number}","permissions":["members.read"]}}\n'
            )
        for number in range(tokens):
            consumer = number % consumers
            out.write(
                f'{{"kind":"token","token":"token{number:08}tttttttttttttttttttt","token_secret":"{number:08}uuuuuuuuuuuuuuuuuuuuuuuu",'
                f'"consumer":"consumer{consumer:08}kkkkkkkkkkkkkkkk","user":"bench","permissions":["members.read"]}}\n'
            )
            if number % max(1, tokens // LOOKED_UP) == 0:
                some.write(
                    f"consumer{consumer:08}kkkkkkkkkkkkkkkk {consumer:08}ssssssssssssssssssssssss "
                    f"token{number:08}tttttttttttttttttttt {number:08}uuuuuuuuuuuuuuuuuuuuuuuu\n"
                )
    return credentials
