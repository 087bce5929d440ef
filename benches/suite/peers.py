"""The processes that are compared, each from a configuration of its own: nginx, HAProxy, nginx with Lua, countersign."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from . import machine

HOST = "api.test"
LUA = Path(__file__).resolve().parent / "check.lua"
BIG = 1 << 20
# Of the container image, unless another is set.
DOCKERFILE = (Path(__file__).resolve().parents[2] / "Dockerfile").read_text()
ENVIRONMENT = {"GLIBC_TUNABLES": re.search("^ENV GLIBC_TUNABLES=(.*)$", DOCKERFILE, re.MULTILINE)[1]}
# Answers with the caller's identity as the API got it, a line for each field.
WHO = "/v1/members/17"


class Peer:
    """A running process with a listener."""

    tls = False

    def __init__(self, name, directory, core):
        self.name, self.directory = name, directory
        directory.mkdir(parents=True)
        self.port = machine.free_port()
        # Without a core the process runs anywhere.
        self.pinned = [] if core is None else ["taskset", "-c", str(core)]

    def pids(self):
        return [self.process.pid]

    def stop(self):
        machine.stop(self.process)


class Nginx(Peer):
    """One nginx with one worker."""

    def __init__(self, name, directory, core, server, *, logged=False, http="", main="", workers=1, under=()):
        super().__init__(name, directory, core)
        log = f"access_log {directory}/access.log;" if logged else "access_log off;"
        temporary = "".join(
            f"{kind}_temp_path {directory}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        (directory / "nginx.conf").write_text(
            # The connection limit is given again: nginx keeps the soft one that it inherits.
            f"{main}\nuser root; worker_processes {workers}; daemon off; worker_rlimit_nofile {machine.raise_descriptor_limit()};\n"
            f"pid {directory}/pid; error_log {directory}/error.log;\n"
            "events { worker_connections 40000; }\n"
            f"http {{ {temporary} {log} keepalive_requests 1000000000; keepalive_timeout 600s; {http}\n"
            + server.replace("PORT", str(self.port))
            + "}\n"
        )
        command = [*self.pinned, *under, "/usr/sbin/nginx", "-p", str(directory), "-c", f"{directory}/nginx.conf"]
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        machine.wait_for(self.port, self.process)

    def pids(self):
        """The workers; the master does nothing."""
        return machine.children(self.process.pid) or [self.process.pid]


def api(directory, core):
    """The API behind every proxy: 1 KiB for every path, 1 MiB under /big; it discards every body."""
    directory.mkdir(parents=True)
    (directory / "big").write_bytes(b"x" * BIG)
    # `return` answers before the body is there; under /upload the API forwards to itself, and so reads it first.
    socket = directory / "api.sock"
    server = (
        f"server {{ listen 127.0.0.1:PORT; listen unix:{socket}; default_type text/plain; client_max_body_size 0;"
        f" client_body_buffer_size 2m; location / {{ return 200 '{'x' * 1024}'; }}"
        f" location /big {{ root {directory}; }}"
        f" location = {WHO} {{ return 200 '$http_x_auth_user\\n$http_x_auth_consumer\\n$http_x_auth_permissions\\n$http_x_auth_kind"
        f"\\n$http_authorization'; }}"
        f" location = /upload {{ proxy_pass http://127.0.0.1:PORT/uploaded; proxy_pass_request_body off;"
        f" proxy_set_header Content-Length ''; }} }}"
    )
    nginx = Nginx("api", directory / "nginx", core, server)
    nginx.socket = socket
    return nginx


def address(upstream):
    """The address of the API: a port of this machine or a Unix socket, as nginx writes it."""
    return f"unix:{upstream}" if isinstance(upstream, Path) else f"127.0.0.1:{upstream}"


def nginx_server(upstream, *, tls=None, listen="", location="", access=""):
    secured = ""
    if tls:
        certificate, key = tls
        secured = (
            f"ssl_certificate {certificate}; ssl_certificate_key {key}; ssl_protocols TLSv1.3; ssl_ecdh_curve X25519;"
            " ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256; ssl_session_tickets off; ssl_session_cache off;"
        )
    return (
        f"upstream api {{ server {address(upstream)}; keepalive 128; keepalive_requests 1000000000; }}\n"
        f"server {{ listen 127.0.0.1:PORT backlog=4096 {'ssl' if tls else ''} {listen}; {secured} client_max_body_size 0;"
        f" location / {{ {access} proxy_pass http://api; proxy_http_version 1.1;"
        f" proxy_set_header Connection ''; proxy_set_header Host $host; {location} }} }}\n"
    )


def nginx(directory, core, upstream, *, name="nginx", logged=False, **rest):
    server_options = {key: rest.pop(key) for key in ("tls", "listen", "location") if key in rest}
    return Nginx(name, directory, core, nginx_server(upstream, **server_options), logged=logged, **rest)


def nginx_lua(directory, core, upstream, credentials, *, name="nginx with a Lua check", logged=False):
    """nginx with the check in Lua, as it is commonly written; consumers, tokens and nonces in shared dictionaries."""
    modules = "/usr/lib/nginx/modules"
    main = f"load_module {modules}/ndk_http_module.so; load_module {modules}/ngx_http_lua_module.so;"
    fill = "".join(
        f"d:set('c:{one['key']}', '{one['secret']}'); d:set('t:{one['token']}', '{one['token_secret']} bench {one['key']}');"
        for one in credentials
    )
    http = (
        "lua_shared_dict credentials 64m; lua_shared_dict nonces 512m;"
        f'init_by_lua_block {{ local d = ngx.shared.credentials; {fill} }}'
    )
    server = nginx_server(upstream, access=f"access_by_lua_file {LUA};")
    return Nginx(name, directory, core, server, logged=logged, http=http, main=main)


class Haproxy(Peer):
    """One HAProxy with one thread."""

    def __init__(self, directory, core, upstream, *, name="HAProxy", logged=False):
        super().__init__(name, directory, core)
        log = "log stdout format raw local0\n option httplog" if logged else ""
        (directory / "haproxy.cfg").write_text(
            f"""
global
 nbthread 1
 maxconn 9000
defaults
 mode http
 {log}
 timeout connect 5s
 timeout client 600s
 timeout server 600s
 timeout http-keep-alive 600s
 http-reuse always
frontend public
 bind 127.0.0.1:{self.port}
 default_backend api
backend api
 server api 127.0.0.1:{upstream}
"""
        )
        self.log = open(directory / "log", "wb")
        command = [*self.pinned, "/usr/sbin/haproxy", "-db", "-f", str(directory / "haproxy.cfg")]
        self.process = subprocess.Popen(command, stdout=self.log, stderr=subprocess.DEVNULL)
        machine.wait_for(self.port, self.process)

    def stop(self):
        super().stop()
        self.log.close()


class Countersign(Peer):
    """One countersign: every check on, operations with permissions, identity headers."""

    def __init__(
        self, directory, core, binary, upstream, *, name="countersign", logged=False, workers=1, tls=None,
        operations=10, records=None, cached=1_000_000, under=(), store=None, like=None, more="", admin="", logs="info",
    ):
        super().__init__(name, directory, core)
        self.binary, self.tls = binary, tls is not None
        self.config = directory / "config.toml"
        self.admin = machine.free_port()
        secured = f'[listen.tls]\ncertificate = "{tls[0]}"\nkey = "{tls[1]}"' if tls else ""
        scheme = "https" if tls else "http"
        self.config.write_text(
            f"""
            [listen]
            address = "127.0.0.1:{self.port}"
            workers = {workers}
            {secured}
            [admin]
            listen = "127.0.0.1:{self.admin}"
            {admin}
            [service]
            base_url = "{scheme}://{HOST}"
            {"" if tls else "allow_http = true"}
            [upstream]
            api_url = "{'' if isinstance(upstream, Path) else 'http://'}{address(upstream)}"
            {store or f'[store]{chr(10)}url = "{directory}/countersign.db"'}
            [cache]
            ttl = "1h"
            max_entries = {cached}
            [limits]
            connections = 30_000
            form_bytes = "2MiB"
            form_fields = 40_000
            form_memory = "256MiB"
            body_timeout = "300s"
            idle_timeout = "600s"
            [log]
            access = {str(logged).lower()}
            level = "{logs}"
            [[permission]]
            name = "members.read"
            {more}
            """
            + operation_list(operations)
        )
        if records is not None:
            self.run("import", str(records))
        self.log = open(directory / "log", "wb")
        command = [*self.pinned, *under, str(binary), "serve", "--config", str(self.config)]
        began = time.monotonic()
        self.process = subprocess.Popen(command, stderr=self.log, env=ENVIRONMENT | os.environ)
        self.wait_until_ready()
        self.started_in = time.monotonic() - began
        if like is not None:
            self.credentials, self.credentials_file = like.credentials, like.credentials_file
        elif records is None:
            self.run("user", "add", "bench", "--password-stdin", "--permanent", "--json", given="bench\n")
            self.credentials = [self.register("bench", permission="members.read")]
            self.credentials_file = self.directory / "credentials"
            write_credentials(self.credentials_file, self.credentials)

    def register(self, name, *, permission):
        """A consumer with an access token."""
        permitted = ["--permission", permission] if permission else []
        consumer = self.run("consumer", "add", "--name", name, *permitted, "--json")
        token = self.run("token", "issue", "--consumer", consumer["key"], "--user", "bench", "--json")
        return {
            "key": consumer["key"], "secret": consumer["secret"],
            "token": token["token"], "token_secret": token["token_secret"],
        }

    def run(self, *arguments, given=""):
        command = [str(self.binary), *arguments, "--config", str(self.config)]
        finished = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
        if finished.returncode != 0:
            sys.exit(f"{' '.join(command)}: {finished.stderr}")
        return json.loads(finished.stdout) if "--json" in arguments else None

    def wait_until_ready(self):
        for _ in range(6000):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}/readyz", timeout=5):
                    return
            except OSError:
                pass
            if self.process.poll() is not None:
                break
            time.sleep(0.01)
        sys.exit(f"countersign is not ready:\n{(self.directory / 'log').read_text()}")

    def stop(self):
        super().stop()
        self.log.close()


class Redis(Peer):
    """One Redis that appends every change to its file, as `appendfsync everysec` does it."""

    def __init__(self, directory, core):
        super().__init__("Redis", directory, core)
        options = ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(directory), "--save", "", "--appendonly", "yes"]
        command = [*self.pinned, "redis-server", *options, "--logfile", str(directory / "log")]
        self.process = subprocess.Popen(command)
        machine.wait_for(self.port, self.process)
        self.url = f"redis://127.0.0.1:{self.port}"


class Postgres(Peer):
    """One PostgreSQL with its default settings, which wait for the disk at every commit."""

    def __init__(self, directory, core):
        super().__init__("PostgreSQL", directory, core)
        programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"))[-1]
        data = directory / "data"
        # PostgreSQL does not run as root.
        user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.geteuid() == 0 else []
        if user:
            for one in (directory, *directory.parents[:1]):
                one.chmod(0o755)
            shutil.chown(directory, "postgres", "postgres")
        quiet = {"check": True, "capture_output": True, "cwd": "/"}
        subprocess.run([*user, programs / "initdb", "-D", data, "-U", "countersign", "--auth=trust"], **quiet)
        options = ["-p", str(self.port), "-k", str(directory), "-h", "127.0.0.1", "-c", "max_wal_size=8GB"]
        with open(directory / "log", "wb") as log:
            command = [*self.pinned, *user, programs / "postgres", "-D", data, *options]
            self.process = subprocess.Popen(command, stderr=log, cwd="/")
        machine.wait_for(self.port, self.process)
        for _ in range(600):
            if subprocess.run([programs / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)]).returncode == 0:
                break
            time.sleep(0.05)
        self.url = f"postgres://countersign@127.0.0.1:{self.port}/postgres"
        self.store = f'[store]\nbackend = "postgres"\nurl = "{self.url}"'

    def pids(self):
        return [self.process.pid, *machine.children(self.process.pid)]

    def stop(self):
        # Ends at once, even while clients are connected.
        self.process.send_signal(signal.SIGINT)
        super().stop()


def operation_list(count):
    """`count` operations, as an API of that size would have them, with the requested one among them."""
    paths = ["/v1/members", "/big", "/upload", "/v1/members/{id}"]
    paths += [f"/v1/collection-{number}/{{id}}/related/{{other}}" for number in range(count)]
    return "".join(
        f'[[operation]]\npath = "{path}"\nmethods = ["GET", "POST"]\npermission = "members.read"\n' for path in paths[:count]
    )


def write_credentials(path, credentials):
    lines = (f"{one['key']} {one['secret']} {one['token']} {one['token_secret']}\n" for one in credentials)
    path.write_text("".join(lines))


class Started:
    """Stops the started processes, last first, and removes the directory."""

    def __init__(self, directory):
        self.directory, self.processes = Path(directory), []

    def __enter__(self):
        return self

    def add(self, process):
        self.processes.append(process)
        return process

    def __exit__(self, *_):
        for process in reversed(self.processes):
            process.stop()
        shutil.rmtree(self.directory, ignore_errors=True)
