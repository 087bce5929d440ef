"""Target 3: the check alone, bytes to verdict, compared with the HMAC that it needs (`cargo bench --bench verify`).

Also the second half of target 8: a signed form of 16 KiB beside the HMAC over it.
"""

import re

from .report import Report


def run(suite):
    report = Report("core", "The check alone")
    times = ["--warm-up-time", "0.5", "--measurement-time", "1" if suite.options.quick else "2"]
    rounds = 1 if suite.options.quick else 3
    # The smallest of the medians: interference of other processes only adds time.
    found, allocations = {}, None
    for _ in range(rounds):
        text = suite.bench("verify", *times, "--noplot")
        allocations = int(re.search(r"(\d+) allocations in 1000 checks", text).group(1))
        for name, nanoseconds in medians(text).items():
            found[name] = min(nanoseconds, found.get(name, nanoseconds))
    pure = found["HMAC-SHA1/pure HMAC from prepared states"]
    report.table(
        "A GET with four query parameters and seven protocol parameters; the form has 512 parameters in 16 KiB.",
        ["", "ns", "to the pure HMAC"],
        [
            [name, f"{value:,.0f}", f"{value / (found['form body/pure HMAC from prepared states'] if 'form' in name else pure):.2f}"]
            for name, value in found.items()
        ],
    )
    report.target(3, "parse to verdict, to the pure HMAC", found["HMAC-SHA1/parse to verdict"] / pure, 2.5)
    report.target(3, "allocations in 1,000 checks", allocations, 0)
    form = found["form body/parse and sign"] / found["form body/pure HMAC from prepared states"]
    report.target(8, "form of 16 KiB signed, to the HMAC over it", form, 1.3)
    report.numbers = {"nanoseconds": found}
    return report


def medians(text):
    """Criterion's middle estimates in nanoseconds, by name."""
    units = {"ps": 0.001, "ns": 1, "µs": 1e3, "us": 1e3, "ms": 1e6, "s": 1e9}
    name, found = None, {}
    for line in text.splitlines():
        match = re.match(r"(\S.*?)?\s+time:\s+\[\S+ \S+ (\S+) (\S+) \S+ \S+\]", line)
        if match:
            found[(match.group(1) or name).strip()] = float(match.group(2)) * units[match.group(3)]
        elif line and not line.startswith((" ", "Benchmarking", "Found")):
            name = line.strip()
    return found
