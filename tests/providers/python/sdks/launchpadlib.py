import os

from launchpadlib.credentials import AccessToken, Credentials
from launchpadlib.launchpad import LaunchpadOAuthAwareHttp
from lazr.restfulclient import _browser
from lazr.restfulclient._browser import Browser

# The trust store of the machine, which is the test's CA here.
_browser.SYSTEM_CA_CERTS = os.environ["SSL_CERT_FILE"]
ROOT = "https://api.launchpad.net/devel/"


class Root:
    """The part of `Launchpad` that makes connections; the rest of it reads a description of Launchpad's own API."""

    credentials, authorizer_class = None, None

    @staticmethod
    def httpFactory(credentials, cache, timeout, proxy_info):
        return LaunchpadOAuthAwareHttp(Root, lambda *_: None, credentials, cache, timeout, proxy_info)


def flow(app):
    credentials = Credentials(app.key)
    app.decide(credentials.get_request_token(web_root="https://launchpad.net/"))
    credentials.exchange_request_token_for_access_token(web_root="https://launchpad.net/")
    return credentials.access_token.key, credentials.access_token.secret, {}


def calls(app):
    credentials = Credentials(app.key)
    credentials.access_token = AccessToken(app.token, app.token_secret)
    browser = Browser(Root, credentials, user_agent="Shop")
    app.call("who", lambda: browser.get(ROOT + "people/+me"))
    app.call("search", lambda: browser.get(ROOT + "bugs?ws.op=searchTasks&search_text=a%26b%2Bc&tags=&status=New&status=Fix%20Committed"))
    app.call("create", lambda: browser.post(ROOT + "bugs", "createBug", title=app.tricky, description=""))
    app.call("patch", lambda: browser.patch(ROOT + "bugs/1", {"title": app.tricky}))
