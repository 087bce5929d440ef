"""Serves an endpoint of deploy/lookup: `flask` or `django`, its file, and the socket of the MariaDB. Prints `LISTENING <port>`."""

import importlib.util
import sys

import pymysql
from werkzeug.serving import WSGIRequestHandler, make_server

KIND, FILE, SOCKET = sys.argv[1:]


def module():
    spec = importlib.util.spec_from_file_location("endpoint", FILE)
    found = importlib.util.module_from_spec(spec)
    sys.modules["endpoint"] = found
    spec.loader.exec_module(found)
    return found


def django_app():
    pymysql.install_as_MySQLdb()
    import django
    from django.conf import settings
    from django.core.wsgi import get_wsgi_application
    from django.urls import path

    database = {"ENGINE": "django.db.backends.mysql", "NAME": "piston", "USER": "root", "OPTIONS": {"unix_socket": SOCKET}}
    settings.configure(ALLOWED_HOSTS=["*"], ROOT_URLCONF="urls", DATABASES={"default": database})
    django.setup()
    urls = type(sys)("urls")
    urls.urlpatterns = [path("internal/oauth", module().lookup)]
    sys.modules["urls"] = urls
    return get_wsgi_application()


class Quiet(WSGIRequestHandler):
    def log_request(self, *_):
        pass


app = module().app if KIND == "flask" else django_app()
server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=Quiet)
print("LISTENING", server.server_port, flush=True)
server.serve_forever()
