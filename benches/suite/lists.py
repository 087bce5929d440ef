"""The admin API and the console over a large store: every list, filter and page, as imported and after most tokens were revoked."""

import hashlib
import http.client
import re
import statistics
import subprocess
import time
from html import unescape
from urllib.parse import quote

from . import machine, peers
from .report import Report
from .stores import Like, timed

# The number of times each request is sent. The first time does not count: nothing is warm then.
TIMES = 9
# The longest that an answer may take, in milliseconds.
LIMIT = 100
TOKEN = "bench" * 8
DAY = 86_400


def run(suite):
    report = Report("lists", "Lists of the admin API and the console")
    tokens = 10_000 if suite.options.quick else 1_000_000
    for name in suite.options.stores:
        machine.say(f"{tokens:,} tokens in {name}")
        with suite.started("lists") as started:
            imported, found = measure(suite, started, name, tokens)
        report.numbers[name] = {"import_s": imported[0], "import_mib": imported[1], "requests": found}
        for when, requests in found.items():
            ranked = sorted(requests.items(), key=lambda one: -one[1]["p50_ms"])
            report.table(
                f"{name}, {tokens:,} tokens, {tokens // 10:,} consumers and as many users, {when}: the slowest of {len(ranked)} requests, "
                f"each sent {TIMES - 1} times. The import took {imported[0]:.0f} s and {imported[1]:.0f} MiB.",
                ["request", "median ms", "longest ms"],
                [[f"`{what}`", f"{one['p50_ms']:.1f}", f"{one['max_ms']:.1f}"] for what, one in ranked[:12]],
            )
            report.target(24, f"the slowest median in {name}, {when}", ranked[0][1]["p50_ms"], LIMIT, unit=" ms")
    return report


def measure(suite, started, name, tokens):
    place = started.directory
    engine = started.add(peers.Postgres(place / "engine", None)) if name != "SQLite" else None
    store = engine.store if engine else f'[store]\nurl = "{place}/countersign.db"'
    write_records(place / "records", tokens)
    (place / "config.toml").write_text(f'[upstream]\napi_url = "http://127.0.0.1:9"\n{store}\n')
    imported = timed([str(suite.binary), "import", str(place / "records"), "--config", str(place / "config.toml")])
    clean(engine)
    (place / "token").write_text(TOKEN + "\n")
    (place / "token").chmod(0o600)
    ours = started.add(peers.Countersign(
        place / "ours", None, suite.binary, 9, name=name, store=store, admin=f'token_file = "{place}/token"', like=Like(None),
    ))
    front = Front(ours.admin)
    found = {"as imported": measured(front, tokens)}
    # Revoked tokens stay in the table.
    front.get("/v1/tokens?user=big", method="DELETE")
    clean(engine)
    found["after half was revoked"] = measured(front, tokens)
    return imported, found


def clean(engine):
    """Runs the maintenance that PostgreSQL does by itself within a minute."""
    if engine:
        subprocess.run(["psql", "-q", engine.url, "-c", "VACUUM ANALYZE"], check=True)


def measured(front, tokens):
    """The times of every request, in milliseconds."""
    found = {}
    for what, path in requests(front, tokens):
        times = []
        for _ in range(TIMES):
            began = time.perf_counter()
            front.get(path)
            times.append((time.perf_counter() - began) * 1000)
        found[what] = {"p50_ms": statistics.median(times[1:]), "max_ms": max(times[1:])}
    return found


def requests(front, tokens):
    """The requests, by name."""
    consumers = tokens // 10
    big, common, rare = "big", consumer(0), consumer(consumers - 1)
    users, searches = f"user{consumers // 2:08}", ["", "0", "42", f"{consumers - 7:08}", "needle", "nowhere"]
    queries = []
    for q in searches:
        queries += [f"/v1/consumers?q={q}", f"/v1/users?q={q}"]
        for enabled in ("true", "false"):
            queries += [f"/v1/consumers?q={q}&enabled={enabled}", f"/v1/users?q={q}&enabled={enabled}"]
    for unused in ("1s", "90d", "200d", "390d", "3000d"):
        queries += [f"/v1/consumers?unused_for={unused}", f"/v1/consumers?unused_for={unused}&enabled=false"]
        queries += [f"/v1/tokens?unused_for={unused}{more}" for more in (
            "", "&user=big", f"&user={users}", f"&consumer={common}", f"&consumer={rare}", f"&user=big&consumer={common}",
        )]
    queries += [f"/v1/tokens{more}" for more in (
        "", "?user=big", f"?user={users}", "?user=none", f"?consumer={common}", f"?consumer={rare}", "?consumer=none",
        f"?user=big&consumer={common}", f"?user={users}&consumer={common}",
    )]
    for kind in ("consumers", "users", "tokens"):
        queries += [f"/v1/{kind}?limit=1000", f"/v1/{kind}?limit=1"]
    of_console = [path.removeprefix("/v1") for path in queries if "limit" not in path and not ("/users" in path and "enabled" in path)]
    for path in queries + of_console:
        yield path, path
        # The second page, and one after many others.
        if following := front.next(path):
            yield f"{path}, second page", following
    for path in ("/v1/consumers?limit=1000", "/v1/tokens?limit=1000", "/v1/tokens?limit=1000&unused_for=90d", "/tokens", "/tokens?unused_for=90d"):
        at = path
        for _ in range(30):
            at = front.next(at) or at
        yield f"{path}, page 30", at
    for path in (
        f"/v1/consumers/{common}", f"/v1/users/{big}", f"/v1/users/{big}/sessions", f"/v1/tokens/{token(tokens - 2)}", f"/v1/tokens/{token(tokens - 2)[:8]}",
        "/", f"/consumer?key={common}", f"/consumer?key={rare}", f"/consumer/edit?key={common}", f"/consumer/disable?key={common}",
        f"/consumer/rotate?key={common}", f"/consumer/remove?key={common}", f"/user?id={big}", f"/user?id={users}", f"/user/disable?id={big}",
        f"/user/end-sessions?id={big}", f"/tokens/revoke?user={big}", f"/tokens/revoke?consumer={common}", "/tokens/revoke?unused_for=90d",
    ):
        yield path, path


class Front:
    """A caller of the API that has a session of the console as well."""

    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        form = {"Content-Type": "application/x-www-form-urlencoded", "Origin": f"http://127.0.0.1:{port}"}
        self.connection.request("POST", "/login", f"token={TOKEN}&to=/", form)
        response = self.connection.getresponse()
        response.read()
        self.cookie = response.headers["Set-Cookie"].split(";")[0]

    def get(self, path, method="GET"):
        own = {"Authorization": f"Bearer {TOKEN}"} if path.startswith("/v1/") else {"Cookie": self.cookie}
        self.connection.request(method, path, headers=own)
        response = self.connection.getresponse()
        body = response.read().decode()
        if response.status != 200:
            raise SystemExit(f"{method} {path}: {response.status} {body}")
        return body

    def next(self, path):
        """The path of the next page."""
        body = self.get(path)
        if not path.startswith("/v1/"):
            link = re.search(r'<a class="button" href="([^"]*)">Next page', body)
            return link and unescape(link[1])
        cursor = re.search(r'"next":"([^"]*)"}$', body)
        start = re.sub(r"[?&]cursor=[^&]*", "", path)
        return cursor and f"{start}{'&' if '?' in start else '?'}cursor={quote(cursor[1])}"


def consumer(number):
    return f"consumer{number:08}"


def token(number):
    return hashlib.md5(str(number).encode()).hexdigest()


def write_records(file, tokens):
    """A tenth as many consumers and users as tokens. One user has half of the tokens, one consumer a third."""
    many, now = tokens // 10, int(time.time())
    at = lambda age: time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now - age))
    with file.open("w", buffering=1 << 20) as out:
        out.write('{"kind":"export","version":1}\n{"kind":"user","id":"big","name":"big"}\n')
        for number in range(many):
            out.write(f'{{"kind":"user","id":"user{number:08}","name":"person {number:08}"}}\n')
            text = "with a needle" if number == many // 3 else f"Application of team {number % 97}"
            state = "" if number % 50 else ',"enabled":false'
            out.write(
                f'{{"kind":"consumer","key":"{consumer(number)}","secret":"{number:08}ssssssssssssssssssssssss","name":"Shop {number}",'
                f'"description":"{text}","created_at":"{at(400 * DAY)}","permissions":["members.read"]{state}}}\n'
            )
        for number in range(tokens):
            user = "big" if number % 2 else f"user{number // 2 % many:08}"
            of = 0 if number % 3 == 0 else number % many
            age = number * 390 // tokens * DAY
            used = f',"last_used_at":"{at(age // 2)}"' if number % 4 else ""
            out.write(
                f'{{"kind":"token","token":"{token(number)}","token_secret":"{number:08}uuuuuuuuuuuuuuuuuuuuuuuu","consumer":"{consumer(of)}",'
                f'"user":"{user}","permissions":["members.read"],"issued_at":"{at(age)}"{used}}}\n'
            )
