"""Assigns each instruction to a stage of a request.

An instruction has a chain of functions that were inlined around it, each with its file. The innermost file with a
stage decides. If there is none (memcpy, the standard library, a hash map) the instruction belongs to the callers of its
function, in proportion to the cost of the calls.
"""

import re
import subprocess
from collections import defaultdict
from pathlib import Path

# Files below src/, first match decides. An empty stage is the caller's.
FILES = [
    (r"server/listener", "accept"),
    (r"server/buffered", "collect parameters"),
    (r"server/", "connection"),
    (r"fields\.rs|peer\.rs", ""),
    (r"route\.rs|parse/(origin|target)", "route"),
    (r"parse/|oauth/(parameters|percent|shape|name|protocol|method)", "collect parameters"),
    (r"oauth/", "verify: base string and comparison"),
    (r"verify/nonces|nonce/", "nonce"),
    (r"verify/", "verify: order and states"),
    (r"store/", "credentials"),
    (r"policy/|gateway/authorize", "policy"),
    (r"forward/(request|credentials|folded)|wire/written_head|identity/", "rewrite request head"),
    (r"forward/(response|location)", "rewrite response head"),
    (r"forward/(pool|tls)", "pool of API connections"),
    (r"forward/", "exchange"),
    (r"telemetry/metrics|app/live", "metrics"),
    (r"telemetry/", "log"),
    (r"proxy/", "proxy"),
    (r"secret\.rs|names\.rs|clock\.rs|lib\.rs|main\.rs", ""),
]
FILES = [(re.compile(pattern), stage) for pattern, stage in FILES]
CRATES = {
    "tokio": "runtime (tokio, mio)", "mio": "runtime (tokio, mio)", "sha1": "HMAC", "hmac": "HMAC", "digest": "HMAC",
    "block_buffer": "HMAC", "block-buffer": "HMAC", "tracing": "log", "tracing_core": "log", "tracing_subscriber": "log",
    "hyper": "hyper", "httparse": "hyper: httparse", "http": "http: header maps and URIs", "hyper_util": "hyper", "want": "hyper",
}
ALLOCATION = re.compile(r"malloc|free|calloc|realloc|memalign|_int_|tcache|sysmalloc|unlink_chunk")
CALLERS = re.compile(r"mem(cpy|move|set|cmp|chr|rchr)|str(len|chr)|_dl_|__tls_get_addr|0x0")


def split(profile, binary):
    """Instructions of one request by stage."""
    chains = symbolize(binary, sorted({key[2] for key in profile.own if is_program(key, binary)} | {
        caller[2] for caller, _ in profile.calls if is_program(caller, binary)
    }))

    def label(key):
        return by_file(chains.get(key[2], ())) or by_name(key[1]) if is_program(key, binary) else by_library(key[1])

    callers = defaultdict(list)
    for (caller, callee), cost in profile.calls.items():
        # The call of a function alone does not show which stage it belongs to.
        if cost > 0 and caller[:2] != callee:
            callers[callee].append((label(caller), caller[:2], cost))
    shares = {function: {"other": 1.0} for function in callers}
    for _ in range(20):
        shares = {function: share(calls, shares) for function, calls in callers.items()}
    stages = defaultdict(float)
    for key, cost in profile.own.items():
        for stage, part in settle(label(key), shares.get(key[:2], {"other": 1.0})).items():
            stages[stage] += cost * part
    return dict(stages)


def share(calls, shares):
    """The stages that a function belongs to, by the cost of its callers."""
    found, total = defaultdict(float), sum(cost for _, _, cost in calls)
    for stage, caller, cost in calls:
        for settled, part in settle(stage, shares.get(caller, {"other": 1.0})).items():
            found[settled] += part * cost / total
    return found


def settle(stage, callers):
    """The final stage, with the `callers` of the function."""
    if stage is None:
        return callers
    return {stage: 1.0}


def is_program(key, binary):
    return Path(key[0]).name == binary.name


def by_file(chain):
    return next((stage for stage in map(file_stage, chain) if stage), None)


def file_stage(file):
    if file.startswith("/rustc/") or "/library/" in file:
        return None
    if "/registry/" in file:
        crate = re.sub(r"-\d.*", "", file.split("/registry/src/", 1)[1].split("/")[1])
        return CRATES.get(crate)
    ours = re.search(r"(?:^|/)src/(.*)", file)
    if ours:
        return next((stage for pattern, stage in FILES if pattern.search(ours.group(1))), None)
    return None


def by_name(function):
    """A function of a library, which has no lines."""
    crate = re.match(r"[<&(\s]*(?:impl )?(\w+)::", function)
    if crate and crate.group(1) in CRATES:
        return CRATES[crate.group(1)]
    return by_library(function) if ALLOCATION.match(function) else None


def by_library(function):
    if CALLERS.search(function):
        return None
    return "allocation" if ALLOCATION.search(function) else "system calls (libc)"


def symbolize(binary, addresses):
    """The files of the functions inlined around each address, innermost first."""
    asked = "".join(f"{address:#x}\n" for address in addresses)
    command = ["llvm-symbolizer", f"--obj={binary}", "--inlines", "--functions=none", "--output-style=LLVM"]
    finished = subprocess.run(command, input=asked, capture_output=True, text=True, check=True)
    blocks = finished.stdout.split("\n\n")
    chains = {}
    for address, block in zip(addresses, blocks):
        chains[address] = [line.rsplit(":", 2)[0] for line in block.splitlines() if not line.startswith("??")]
    return chains
