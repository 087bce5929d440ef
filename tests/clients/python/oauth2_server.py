"""An OAuth 2 server of an operator: Authlib's, with the authorization code grant, PKCE and JWT access tokens (RFC 9068).

Takes its port. Users log in on its page of consent; `scope` is what the client may have of what it asks for.
"""

import sys
from types import SimpleNamespace

from authlib.integrations.flask_oauth2 import AuthorizationServer
from authlib.oauth2.rfc6749 import ClientMixin
from authlib.oauth2.rfc6749.grants import AuthorizationCodeGrant
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oauth2.rfc9068 import JWTBearerTokenGenerator
from flask import Flask, jsonify, request
from joserfc.jwk import ECKey, KeySet

ISSUER = f"http://127.0.0.1:{sys.argv[1]}"
USERS = {"ada": "enchantress of numbers"}
KEYS = KeySet([ECKey.generate_key("P-256", {"use": "sig", "alg": "ES256"}, auto_kid=True)])
CODES = {}


class Client(ClientMixin):
    def __init__(self, client_id, secret, redirect_uri, scope):
        self.client_id, self.secret, self.redirect_uri, self.scope = client_id, secret, redirect_uri, scope

    def get_client_id(self):
        return self.client_id

    def get_default_redirect_uri(self):
        return self.redirect_uri

    def check_redirect_uri(self, redirect_uri):
        return redirect_uri == self.redirect_uri

    def get_allowed_scope(self, scope):
        return " ".join(one for one in scope.split() if one in self.scope.split())

    def check_client_secret(self, client_secret):
        return client_secret == self.secret

    def check_endpoint_auth_method(self, method, endpoint):
        return method in ("client_secret_basic", "client_secret_post")

    def check_response_type(self, response_type):
        return response_type == "code"

    def check_grant_type(self, grant_type):
        return grant_type == "authorization_code"


CLIENTS = {"printer": Client("printer", "of-the-client", "http://127.0.0.1/back", "members.read")}


class CodeGrant(AuthorizationCodeGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = ("client_secret_basic", "client_secret_post")

    def save_authorization_code(self, code, request):
        asked = dict(request.payload.data)
        CODES[code] = SimpleNamespace(
            client_id=request.client.client_id,
            user=request.user,
            code_challenge=asked.get("code_challenge"),
            code_challenge_method=asked.get("code_challenge_method"),
            get_redirect_uri=lambda: asked.get("redirect_uri"),
            get_scope=lambda: asked.get("scope"),
        )

    def query_authorization_code(self, code, client):
        found = CODES.get(code)
        return found if found and found.client_id == client.client_id else None

    def delete_authorization_code(self, authorization_code):
        for code in [code for code, it in CODES.items() if it is authorization_code]:
            del CODES[code]

    def authenticate_user(self, authorization_code):
        return authorization_code.user


class AccessTokens(JWTBearerTokenGenerator):
    def get_jwks(self):
        return KEYS

    def get_audiences(self, client, user, scope):
        return ["https://api.example.com"]


app = Flask(__name__)
server = AuthorizationServer(app, CLIENTS.get, lambda token, request: None)
server.register_token_generator("default", AccessTokens(ISSUER, alg="ES256"))
server.register_grant(CodeGrant, [CodeChallenge(required=True)])


@app.get("/authorize")
def ask():
    server.get_consent_grant(end_user=None)
    return f"<form method=post>{request.args['client_id']} asks: <input name=user> <input name=password type=password> <button>Allow</button></form>"


@app.post("/authorize")
def decide():
    user = request.form["user"]
    is_right = USERS.get(user) == request.form["password"]
    grant = server.get_consent_grant(end_user=None)
    return server.create_authorization_response(
        grant=grant, grant_user=SimpleNamespace(get_user_id=lambda: user) if is_right else None
    )


@app.post("/token")
def token():
    return server.create_token_response()


@app.get("/jwks.json")
def jwks():
    return jsonify(KEYS.as_dict(private=False))


app.run("127.0.0.1", int(sys.argv[1]))
