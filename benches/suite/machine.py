"""The machine: packages, processes, and the kernel's data about them."""

import contextlib
import datetime
import os
import platform
import resource
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

PACKAGES = {
    "/usr/sbin/nginx": "nginx-light",
    "/usr/lib/nginx/modules/ngx_http_lua_module.so": "libnginx-mod-http-lua",
    "/usr/sbin/haproxy": "haproxy",
    "/usr/bin/wrk": "wrk",
    "/usr/bin/h2load": "nghttp2-client",
    "/usr/bin/valgrind": "valgrind",
    "/usr/bin/llvm-symbolizer": "llvm",
    "/usr/bin/openssl": "openssl",
    "/usr/bin/redis-server": "redis-server",
    "/usr/bin/psql": "postgresql",
}


def install():
    """Installs the peers from Debian, if something is missing, and says so."""
    missing = [package for file, package in PACKAGES.items() if not Path(file).exists()]
    if not missing:
        return
    say(f"installing the Debian packages {' '.join(missing)}")
    sudo = [] if os.geteuid() == 0 else ["sudo"]
    # The packages start services of their own, which would disturb the measurement.
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    subprocess.run([*sudo, "apt-get", "update", "-q"], check=True, stdout=sys.stderr)
    command = ["apt-get", "install", "-q", "-y", "--no-install-recommends", *missing]
    subprocess.run([*sudo, *command], check=True, env=environment, stdout=sys.stderr)


def describe():
    """The facts about the machine that a reader of the numbers needs."""
    model = next(
        (line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line),
        platform.machine(),
    )
    flags = Path("/proc/cpuinfo").read_text()
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "processor": model + (" with SHA-NI" if "sha_ni" in flags else ""),
        "cores": len(os.sched_getaffinity(0)),
        "kernel": platform.release().split("-")[0],
        "load_average": os.getloadavg()[0],
        "nginx": version(["/usr/sbin/nginx", "-v"], "nginx/"),
        "haproxy": version(["/usr/sbin/haproxy", "-v"], "version "),
        "rustc": version(["rustc", "--version"], "rustc "),
    }


def version(command, before):
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    text = finished.stdout + finished.stderr
    return text.split(before, 1)[1].split()[0].split("-")[0] if before in text else "unknown"


def say(text):
    print(text, file=sys.stderr, flush=True)


def cpu_nanoseconds(pids):
    """CPU time of all threads of these processes, from the scheduler's own account."""
    total = 0
    for pid in pids:
        # A process that ends meanwhile no longer counts.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for task in Path(f"/proc/{pid}/task").iterdir():
                total += int((task / "schedstat").read_text().split()[0])
    return total


def resident_bytes(pids, kind="Rss"):
    """Resident memory of these processes, page by page (`status` may lag behind). Of `Pss` pages that several have count once."""
    total = 0
    for pid in pids:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith(f"{kind}:"):
                    total += int(line.split()[1]) * 1024
    return total


def children(pid):
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(port, process):
    for _ in range(6000):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        if process.poll() is not None:
            break
        time.sleep(0.01)
    sys.exit(f"nothing listens on port {port}")


def stop(process):
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def raise_descriptor_limit():
    """Lets this process and its children have 65,536 descriptors, or as many as allowed; returns the number."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = max(hard, 65_536)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, wanted))
    except (ValueError, PermissionError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        return hard
    return wanted


def most_connections():
    """The number of connections to try: countersign accepts only as many as it can serve at once, with two descriptors each."""
    return min(20_000, (raise_descriptor_limit() - 200) // 2)


def certificate(directory, kind):
    """A throw-away certificate for api.test; `kind` is "ecdsa" (P-256) or "rsa" (2048 bits)."""
    key = ["ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"] if kind == "ecdsa" else ["rsa:2048"]
    paths = directory / f"{kind}.pem", directory / f"{kind}.key"
    command = ["openssl", "req", "-x509", "-newkey", *key, "-nodes", "-days", "30", "-subj", "/CN=api.test"]
    command += ["-addext", "subjectAltName=DNS:api.test", "-out", str(paths[0]), "-keyout", str(paths[1])]
    subprocess.run(command, check=True, capture_output=True)
    return paths
