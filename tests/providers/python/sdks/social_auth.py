"""social-auth-core, the base of Python Social Auth: the backend that the settings name."""

from importlib import import_module

from social_core.strategy import BaseStrategy


class Strategy(BaseStrategy):
    """What a web framework does for social-auth-core: settings, the session, the request, the redirect."""

    def __init__(self, app):
        super().__init__()
        self.session, self.data, self.app = {}, {}, app

    def get_setting(self, name):
        settings = {"KEY": self.app.key, "SECRET": self.app.secret, **self.app.settings["options"]}
        return settings[name.rsplit("_", 1)[-1] if name.endswith(("_KEY", "_SECRET")) else name]

    def request_data(self, merge=True):
        return self.data

    def session_get(self, name, default=None):
        return self.session.get(name, default)

    def session_set(self, name, value):
        self.session[name] = value

    def session_pop(self, name):
        return self.session.pop(name, None)

    def build_absolute_uri(self, path=None):
        return path or self.app.callback

    def request_is_secure(self):
        return True

    def redirect(self, url):
        return url

    def authenticate(self, backend, *_, **more):
        return more["response"]


def flow(app):
    module, _, name = app.settings["backend"].rpartition(".")
    backend, strategy = getattr(import_module(module), name), Strategy(app)
    strategy.data = app.back(backend(strategy, app.callback).auth_url())
    user = backend(strategy, app.callback).auth_complete()
    token = user["access_token"]
    return token["oauth_token"], token["oauth_token_secret"], user
