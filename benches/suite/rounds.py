"""Interleaved rounds: every peer gets the same load in every round, so that other load on the machine affects all alike."""

import contextlib
import json
import statistics
import subprocess
import sys

from . import machine
from .peers import HOST


class Load:
    """The load generator, on its core."""

    def __init__(self, options, binary):
        self.options, self.binary = options, binary

    def command(self, peer, requests, **flags):
        """`flags` are the generator's own options, underscores for hyphens; True is a flag without a value."""
        core = [] if self.options.load_core is None else ["taskset", "-c", str(self.options.load_core)]
        command = [*core, str(self.binary), "--address", f"127.0.0.1:{peer.port}", "--host", HOST]
        command += ["--requests", str(requests), "--credentials", str(self.credentials(peer))]
        if peer.tls:
            command.append("--tls")
        for name, value in flags.items():
            if value is True:
                command.append(f"--{name.replace('_', '-')}")
            elif value is not None and value is not False:
                command += [f"--{name.replace('_', '-')}", str(value)]
        return command

    def credentials(self, peer):
        return peer.credentials_file

    def drive(self, peer, requests, **flags):
        """One run on one peer: its cost and its time. With `rejected` every request has to be rejected."""
        with self.connected(peer, requests, **flags) as run:
            before = machine.cpu_nanoseconds(peer.pids())
            told = run()
            cpu = machine.cpu_nanoseconds(peer.pids()) - before
        told["cpu_us"] = cpu / 1000 / requests
        told["rate"] = requests / told["seconds"]
        told["used"] = cpu / 1e9 / told["seconds"]
        return told

    @contextlib.contextmanager
    def connected(self, peer, requests, *, rejected=False, **flags):
        """Connections that are open and had an answer each; calling it sends the requests and returns the result."""
        # The first request on each connection counts too.
        expected = requests + flags["connections"] if rejected else 0
        command = self.command(peer, requests, **flags)
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as load:

            def line(given=""):
                load.stdin.write(given)
                load.stdin.flush()
                return load.stdout.readline() or sys.exit(f"{peer.name}: {load.stderr.read()}")

            def run():
                told = json.loads(line("run\n"))
                if told["failures"] != expected:
                    sys.exit(
                        f"{peer.name}: {told['failures']} requests failed, not {expected}; the first answer:\n{told['first_failure']}"
                    )
                return told

            line()
            yield run


class Rounds:
    """The numbers of all rounds, by peer."""

    def __init__(self, rows):
        self.rows = rows

    def median(self, name, key):
        return statistics.median(row[name][key] for row in self.rows)

    def low(self, name, key):
        """A quarter of the rounds are below it."""
        values = sorted(row[name][key] for row in self.rows)
        return values[len(values) // 4]

    def ratio(self, name, base, key="cpu_us"):
        """The median of the ratios taken within each round."""
        return statistics.median(row[name][key] / row[base][key] for row in self.rows)

    def spread(self, name, base, key="cpu_us"):
        """Half of the rounds' ratios are between these two."""
        ratios = sorted(row[name][key] / row[base][key] for row in self.rows)
        return ratios[len(ratios) // 4], ratios[(3 * len(ratios)) // 4 if len(ratios) > 1 else 0]


def interleave(title, peers, rounds, run):
    """Calls `run(peer)` for all peers in every round, reversing the order each time."""
    rows = []
    for number in range(rounds):
        order = peers if number % 2 == 0 else peers[::-1]
        rows.append({peer.name: run(peer) for peer in order})
        told = "  ".join(f"{peer.name} {rows[-1][peer.name].get('cpu_us', 0):.2f}" for peer in peers)
        machine.say(f"{title}, round {number + 1}/{rounds}: {told}")
    return Rounds(rows)
