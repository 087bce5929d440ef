"""An API that is its own OAuth 1.0a provider: Flask, oauthlib and a MariaDB. It knows nothing of countersign.

Arguments: the socket of the MariaDB, and a file with the credentials that it reads now: `oauth` (its own check), `both` (the
identity header, else its own check) or `header`. Prints `LISTENING <port>`."""

import string
import sys
import time

import pymysql
from flask import Flask, Response, g, redirect, request
from oauthlib.common import add_params_to_uri
from oauthlib.oauth1 import RequestValidator, ResourceEndpoint, WebApplicationServer
from werkzeug.security import check_password_hash
from werkzeug.serving import WSGIRequestHandler, make_server

SOCKET, READS = sys.argv[1:]
app = Flask(__name__)


def sql(statement, *values):
    """The rows of a statement; each request has a connection of its own."""
    if "database" not in g:
        g.database = pymysql.connect(
            unix_socket=SOCKET, user="root", database="library", autocommit=True
        )
    with g.database.cursor(pymysql.cursors.DictCursor) as cursor:
        cursor.execute(statement, values)
        return cursor.fetchall()


@app.teardown_appcontext
def close(_):
    if "database" in g:
        g.pop("database").close()


def one(statement, *values):
    return next(iter(sql(statement, *values)), None)


class Validator(RequestValidator):
    enforce_ssl = False
    safe_characters = set(string.ascii_letters + string.digits + "-_.~")
    client_key_length = nonce_length = (1, 64)
    request_token_length = access_token_length = verifier_length = (1, 64)
    realms = ["books", "loans"]
    dummy_client = dummy_request_token = dummy_access_token = "dummy"

    def client(self, key):
        return one("SELECT * FROM clients WHERE client_key = %s AND active", key)

    def token(self, kind, client_key, token):
        statement = f"SELECT * FROM {kind}_tokens WHERE client_key = %s AND token = %s"
        return one(statement, client_key, token)

    def validate_client_key(self, client_key, request):
        return self.client(client_key) is not None

    def get_client_secret(self, client_key, request):
        client = self.client(client_key)
        return client["client_secret"] if client else "dummy"

    def validate_request_token(self, client_key, token, request):
        return self.token("request", client_key, token) is not None

    def validate_access_token(self, client_key, token, request):
        return self.token("access", client_key, token) is not None

    def get_request_token_secret(self, client_key, token, request):
        row = self.token("request", client_key, token)
        return row["secret"] if row else "dummy"

    def get_access_token_secret(self, client_key, token, request):
        row = self.token("access", client_key, token)
        return row["secret"] if row else "dummy"

    def validate_timestamp_and_nonce(
        self, client_key, timestamp, nonce, request, request_token=None, access_token=None
    ):
        try:
            sql("INSERT INTO nonces VALUES (%s, %s, %s)", client_key, timestamp, nonce)
        except pymysql.err.IntegrityError:
            return False
        return abs(time.time() - int(timestamp)) < 300

    def validate_redirect_uri(self, client_key, redirect_uri, request):
        return redirect_uri in ("oob", (self.client(client_key) or {}).get("callback"))

    def get_default_realms(self, client_key, request):
        return ["books"]

    def validate_requested_realms(self, client_key, realms, request):
        return set(realms) <= set(self.realms)

    def get_realms(self, token, request):
        row = one("SELECT realms FROM request_tokens WHERE token = %s", token)
        return row["realms"].split()

    def validate_realms(self, client_key, token, request, uri=None, realms=None):
        row = self.token("access", client_key, token)
        return row is not None and set(realms or []) <= set(row["realms"].split())

    def get_redirect_uri(self, token, request):
        return one("SELECT callback FROM request_tokens WHERE token = %s", token)["callback"]

    def verify_request_token(self, token, request):
        return one("SELECT 1 FROM request_tokens WHERE token = %s", token) is not None

    def verify_realms(self, token, realms, request):
        return True

    def validate_verifier(self, client_key, token, verifier, request):
        row = self.token("request", client_key, token)
        return row is not None and row["verifier"] == verifier

    def invalidate_request_token(self, client_key, request_token, request):
        sql("DELETE FROM request_tokens WHERE token = %s", request_token)

    def save_request_token(self, token, request):
        sql(
            "INSERT INTO request_tokens VALUES (%s, %s, %s, %s, %s, NULL, NULL)",
            token["oauth_token"], token["oauth_token_secret"], request.client_key,
            request.redirect_uri, " ".join(request.realms),
        )

    def save_verifier(self, token, verifier, request):
        sql(
            "UPDATE request_tokens SET verifier = %s, user_id = %s WHERE token = %s",
            verifier["oauth_verifier"], verifier["user_id"], token,
        )

    def save_access_token(self, token, request):
        row = self.token("request", request.client_key, request.resource_owner_key)
        sql(
            "INSERT INTO access_tokens VALUES (%s, %s, %s, %s, %s)",
            token["oauth_token"], token["oauth_token_secret"], request.client_key, row["user_id"], row["realms"],
        )


validator = Validator()
provider, resource = WebApplicationServer(validator), ResourceEndpoint(validator)


def parts():
    """The request as oauthlib takes it."""
    return request.url, request.method, request.form, dict(request.headers)


def respond(found):
    headers, body, status = found
    return Response(body or "", status, headers)


@app.post("/oauth/request_token")
def request_token():
    return respond(provider.create_request_token_response(*parts()))


@app.post("/oauth/access_token")
def access_token():
    return respond(provider.create_access_token_response(*parts()))


@app.get("/oauth/authorize")
def authorization_page():
    token = request.args["oauth_token"]
    return f'<form method="post"><input name="oauth_token" value="{token}"><input name="name"><input name="password"></form>'


@app.post("/oauth/authorize")
def authorize():
    user = one("SELECT * FROM users WHERE name = %s", request.form["name"])
    if user is None or not check_password_hash(user["password"], request.form["password"]):
        return "Wrong name or password", 403
    uri, method, _, headers = parts()
    uri = add_params_to_uri(uri, [("oauth_token", request.form["oauth_token"])])
    credentials = {"user_id": user["id"]}
    return respond(
        provider.create_authorization_response(uri, method, None, headers, None, credentials)
    )


def user_of_request():
    with open(READS) as file:
        reads = file.read().strip()
    user = request.headers.get("X-Auth-User")
    if reads in ("both", "header") and user:
        return user
    if reads == "header":
        return None
    is_right, seen = resource.validate_protected_resource_request(*parts(), ["books"])
    if not is_right:
        return None
    row = validator.token("access", seen.client_key, seen.resource_owner_key)
    return str(row["user_id"])


@app.route("/books/<path:name>", methods=["GET", "POST"])
def books(name):
    user = user_of_request()
    if user is None:
        return "401 by the API", 401
    return f"{request.method} {name} of {user}"


WSGIRequestHandler.protocol_version = "HTTP/1.1"
server = make_server("127.0.0.1", 0, app, threaded=True)
print(f"LISTENING {server.server_port}", flush=True)
server.serve_forever()
