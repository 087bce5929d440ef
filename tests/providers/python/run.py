"""Runs one SDK as an application would, and leads its connections to the program under test.

Arguments: the name of a module in `sdks`, and settings as JSON. Every host of `settings["hosts"]` leads to this machine, ports 443 and 80 to
`settings["port"]`, and all other hosts are unknown; the SDK is not changed. The protocol with the test is that of `tests/clients`: `AUTHORIZE url`,
then one line of input (the address that the browser was sent back to, or the verifier), and at the end `REPORT json`.
"""

import importlib
import json
import socket
import sys
import traceback
from urllib.parse import parse_qsl, urlsplit

settings = json.loads(sys.argv[2])
real_getaddrinfo, real_connect = socket.getaddrinfo, socket.socket.connect
LOCAL = ("127.0.0.1", "localhost")


def getaddrinfo(host, *arguments, **more):
    name = host.decode() if isinstance(host, bytes) else host
    if name in settings["hosts"]:
        return real_getaddrinfo("127.0.0.1", *arguments, **more)
    if name in LOCAL:
        return real_getaddrinfo(host, *arguments, **more)
    raise socket.gaierror(socket.EAI_NONAME, f"{name} is not a host of this test")


def connect(self, address):
    if address[1] in (80, 443):
        address = ("127.0.0.1", settings["port"])
    return real_connect(self, address)


socket.getaddrinfo, socket.socket.connect = getaddrinfo, connect


class App:
    """The application around an SDK."""

    def __init__(self):
        self.key, self.secret = settings["consumer_key"], settings["consumer_secret"]
        self.callback = settings["callback"]
        self.tricky = settings["tricky"]
        self.settings = settings
        self.token = self.token_secret = None
        self.calls = {}

    def decide(self, url):
        """Sends the person to the service; returns the address to which the browser came back, or the verifier."""
        print("AUTHORIZE", url, flush=True)
        return sys.stdin.readline().rstrip("\n")

    def back(self, url):
        """The same, as the values of that address's query."""
        return dict(parse_qsl(urlsplit(self.decide(url)).query))

    def call(self, name, function):
        """Makes a call of the SDK; the error is in the report."""
        try:
            function()
            self.calls[name] = None
        except (Exception, SystemExit) as error:
            traceback.print_exc()
            self.calls[name] = shown(error)


def shown(error):
    return f"{type(error).__name__}: {error}"


def main():
    sdk = importlib.import_module(f"sdks.{sys.argv[1]}")
    app, report = App(), {}
    if hasattr(sdk, "flow"):
        try:
            app.token, app.token_secret, report["token"] = sdk.flow(app)
        except (Exception, SystemExit) as error:
            traceback.print_exc()
            report["flow"] = shown(error)
        if "token" in report:
            try:
                report["denied"] = f"not denied: {sdk.flow(app)}"
            except (Exception, SystemExit) as error:
                report["denied"] = shown(error)
    if app.token is None:
        app.token, app.token_secret = settings["token"], settings["token_secret"]
    if hasattr(sdk, "calls"):
        sdk.calls(app)
    report["calls"] = app.calls
    return report


print("REPORT", json.dumps(main(), default=str), flush=True)
