"""Target 3: the check alone, bytes to verdict, compared with the HMAC that it needs (`cargo bench --bench verify`).

Also the second half of target 8: a signed form of 16 KiB beside the HMAC over it.
"""

import re

from .report import Report


def run(suite):
    report = Report("core", "The check alone")
    seconds = "1" if suite.options.quick else "2"
    rounds = 1 if suite.options.quick else 3
    # The smallest of the medians: interference of other processes only adds time.
    found, allocations = {}, None
    for _ in range(rounds):
        text = suite.bench("verify", "--sort", "location", "--min-time", seconds)
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
    """The medians of divan's table in nanoseconds, by the path in its tree."""
    units = {"ps": 0.001, "ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}
    row = re.compile(r"(?P<depth>(?:[│ ]  )*)[├╰]─ (?P<name>\S+(?: \S+)*?)(?: {2,}| +│)(?P<columns>.*)")
    path, found = [], {}
    for match in filter(None, map(row.match, text.splitlines())):
        path[len(match["depth"]) // 3 :] = [match["name"]]
        columns = [column.split() for column in match["columns"].split("│")]
        if len(columns) >= 3 and len(columns[2]) == 2:
            value, unit = columns[2]
            found["/".join(path)] = float(value) * units[unit]
    return found
