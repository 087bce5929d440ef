"""An endpoint for store.lookup (docs/lookup.md), with the tables of django-piston.

The environment has LOOKUP_SECRET, the file of the secret.
"""

import hmac, json, os
from django.db import connection
from django.http import HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt

secret = open(os.environ["LOOKUP_SECRET"]).read().strip()

def row(statement, value):
    with connection.cursor() as cursor:
        cursor.execute(statement, [value])
        found = cursor.fetchone()
        return found and dict(zip([column[0] for column in cursor.description], found))

@csrf_exempt
def lookup(request):
    sent = request.headers.get("Authorization", "")
    if not hmac.compare_digest(sent.encode(), f"Bearer {secret}".encode()):
        return HttpResponse(status=401)
    asked = json.loads(request.body)
    if "token" in asked:
        found = row("SELECT t.*, c.`key` AS consumer FROM piston_token t JOIN piston_consumer c ON c.id = t.consumer_id "
                    "WHERE t.token_type = 2 AND t.is_approved AND t.`key` = %s", asked["token"])
        record = found and {"token": found["key"], "token_secret": found["secret"], "consumer": found["consumer"],
                            "user": str(found["user_id"]), "permissions": ["read"]}
    else:
        found = row("SELECT * FROM piston_consumer WHERE `key` = %s", asked["consumer_key"])
        record = found and {"key": found["key"], "secret": found["secret"], "name": found["name"],
                            "permissions": ["read"], "enabled": found["status"] == "accepted"}
    return JsonResponse(record) if record else HttpResponse(status=404)
