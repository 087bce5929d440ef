"""An endpoint for store.lookup (docs/lookup.md), with the tables of a home-made provider: flask --app lookup_flask run --port 9000

The environment has LOOKUP_SECRET, the file of the secret, and DB_SOCKET, the socket of the database.
"""

import hmac, os, pymysql
from flask import Flask, abort, jsonify, request

app = Flask(__name__)
secret = open(os.environ["LOOKUP_SECRET"]).read().strip()

def row(statement, value):
    options = {"unix_socket": os.environ["DB_SOCKET"], "user": "root", "database": "library"}
    with pymysql.connect(**options, cursorclass=pymysql.cursors.DictCursor) as database, database.cursor() as cursor:
        cursor.execute(statement, (value,))
        return cursor.fetchone()

@app.post("/internal/oauth")
def lookup():
    sent = request.headers.get("Authorization", "")
    if not hmac.compare_digest(sent.encode(), f"Bearer {secret}".encode()):
        abort(401)
    asked = request.get_json()
    if "token" in asked:
        found = row("SELECT * FROM access_tokens WHERE token = %s", asked["token"]) or abort(404)
        return jsonify(token=found["token"], token_secret=found["secret"], consumer=found["client_key"],
                       user=str(found["user_id"]), permissions=found["realms"].split(),
                       revoked=found["revoked_at"] is not None)
    found = row("SELECT * FROM clients WHERE client_key = %s", asked["consumer_key"]) or abort(404)
    return jsonify(key=found["client_key"], secret=found["client_secret"], name=found["name"],
                   permissions=["read"], enabled=bool(found["active"]))
