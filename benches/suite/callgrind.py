"""Reads the output of callgrind with `--dump-instr=yes`: costs of single instructions, and of calls."""

import re
from collections import Counter

NAME = re.compile(r"(c?(?:ob|fl|fi|fe|fn))=\((\d+)\)(?: (.*))?$")


class Profile:
    """`own[(object, function, address)]`, and `calls[(object, function, address), (object, function)]` with all below it."""

    def __init__(self):
        self.own, self.calls = Counter(), Counter()
        # All events by callgrind's names: instructions, and with `--cache-sim=yes` the misses of the simulated caches.
        self.events = Counter()

    def total(self):
        return sum(self.own.values())

    def lines(self):
        """The number of 64-byte lines of code that at least every second request runs through; for the cost of one request."""
        return len({address // 64 for (_, _, address), count in self.own.items() if count >= 0.5})


def read(file):
    profile = Profile()
    names = {"ob": {}, "fl": {}, "fn": {}}
    here = {"ob": "?", "fn": "?"}
    there, is_call = {}, False
    address, events = 0, ["Ir"]
    for line in file.read_text(errors="replace").splitlines():
        match = NAME.match(line)
        if match:
            kind, number, name = match.groups()
            known = names["fl" if kind.lstrip("c") in ("fl", "fi", "fe") else kind.lstrip("c")]
            if name is not None:
                known[number] = name
            if kind in here:
                here[kind] = known[number]
            elif kind in ("cob", "cfn"):
                there[kind[1:]] = known[number]
        elif line.startswith("events: "):
            events = line.split()[1:]
        elif line.startswith("calls="):
            is_call = True
        elif line[:1] in ("0", "+", "-", "*") and " " in line:
            fields = line.split()
            address = place(fields[0], address)
            key = (here["ob"], here["fn"], address)
            if is_call:
                profile.calls[key, (there.get("ob", here["ob"]), there["fn"])] += int(fields[2])
                there, is_call = {}, False
            else:
                profile.own[key] += int(fields[2])
                for event, count in zip(events, fields[2:]):
                    profile.events[event] += int(count)
    return profile


def place(text, last):
    if text == "*":
        return last
    if text[0] in "+-":
        return last + int(text)
    return int(text, 16)


def difference(large, small, requests):
    """The cost of one request: a long run less a short one, divided by the difference in requests."""
    profile = Profile()
    for name in ("own", "calls", "events"):
        many, few, out = getattr(large, name), getattr(small, name), getattr(profile, name)
        for key in many.keys() | few.keys():
            out[key] = (many[key] - few[key]) / requests
    return profile
