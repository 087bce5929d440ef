"""Target 4: the nonce window at ten million entries (`cargo bench --bench nonce`)."""

import re

from .report import Report

UNITS = {"ns": 1e-6, "µs": 1e-3, "ms": 1.0, "s": 1e3}


def run(suite):
    report = Report("nonces", "Nonce window")
    # One thread inserts, others make the files of the log and drop old seconds.
    cores = f"{suite.options.proxy_core},{suite.options.load_core}"
    text = suite.bench("nonce", "--min-time", "0.5", cores=cores)
    row = re.compile(
        r"(?P<medium>\w+)\s+(?P<order>live|scattered)\s+(?P<fill_ns>[\d.]+) ns\s+(?P<fill>[\d.]+) M/s\s+(?P<steady_ns>[\d.]+) ns\s+"
        r"(?P<steady>[\d.]+) M/s\s+(?P<file>[\d.]+) B\s+(?P<memory>[\d.]+) B\s+(?P<expire>[\d.]+)(?P<expire_unit>\D+?)\s+"
        r"(?P<p9999>[\d.]+)(?P<p9999_unit>\D+?)\s+(?P<worst>[\d.]+)(?P<worst_unit>\D+?)\s*$"
    )
    rows = [match.groupdict() for match in map(row.match, text.splitlines()) if match]
    milliseconds = lambda one, key: float(one[key]) * UNITS[one[f"{key}_unit"]]
    report.table(
        "10 million entries, window of 300 s, one thread that inserts; the longest times beside one that drops old seconds. Live: timestamps as they come; scattered: anywhere in the window, which no cache "
        "can follow. A file on tmpfs or disk is what survives a restart.",
        ["medium", "order", "filling M/s", "steady M/s", "file B", "memory B", "longest expiry ms", "p99.99 insertion µs", "longest insertion ms"],
        [
            [one["medium"], one["order"], one["fill"], one["steady"], one["file"], one["memory"],
             f"{milliseconds(one, 'expire'):.3f}", f"{milliseconds(one, 'p9999') * 1000:.1f}", f"{milliseconds(one, 'worst'):.3f}"]
            for one in rows
        ],
    )
    live = [one for one in rows if one["order"] == "live"]
    report.target(4, "bytes a nonce", max(float(one["memory"]) for one in rows), 40)
    report.target(4, "million insertions a second and core, live, steady", min(float(one["steady"]) for one in live), 5, at_least=True)
    report.target(4, "longest insertion", max(milliseconds(one, "worst") for one in rows), 2, unit=" ms")
    report.numbers = {"rows": rows}
    return report
