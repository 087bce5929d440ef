"""The parts of `benches/run`: each is a module with `run(suite) -> Report`."""

from importlib import import_module

PARTS = {
    "cost": "cost",
    "instructions": "instructions",
    "atomics": "atomics",
    "assertion": "assertion",
    "core": "core",
    "nonces": "nonces",
    "idle": "idle",
    "latency": "latency",
    "tls": "tls",
    "bodies": "bodies",
    "growth": "growth",
    "start": "start",
    "http2": "http2",
    "shared": "shared",
    "stores": "stores",
    "lists": "lists",
    "upkeep": "upkeep",
}


def part(name):
    return import_module(f".{PARTS[name]}", __name__)
