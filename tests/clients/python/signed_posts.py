"""Partners that sign their posts with a consumer key alone, by libraries: an outcome post by lti, and a JSON body whose query is
signed, which is Oracle Eloqua's form, and one with a hash, by requests-oauthlib. Takes a JSON object (`what`, `origin`, `key`, `secret`), and prints
one: the result with the right secret and with a wrong one."""

import json
import sys
from urllib.parse import urlsplit

import requests
from lti import OutcomeRequest
from oauthlib.oauth1 import SIGNATURE_TYPE_QUERY
from requests_oauthlib import OAuth1

SETTINGS = json.loads(sys.argv[1])


def outcome(secret):
    """The response as the library reads it."""
    request = OutcomeRequest({
        "consumer_key": SETTINGS["key"],
        "consumer_secret": secret,
        "lis_outcome_service_url": f"{SETTINGS['origin']}/outcomes",
        "lis_result_sourcedid": "ada:7",
    })
    response = request.post_replace_result(0.5)
    return [response.is_success(), str(response.code_major)]


def eloqua(secret):
    """The statuses of a call and of the same call again."""
    sign = OAuth1(SETTINGS["key"], secret, signature_type=SIGNATURE_TYPE_QUERY)
    url = f"{SETTINGS['origin']}/notify?instance=7&asset=a%20b&items=1,2"
    body = json.dumps({"items": [{"ContactID": "1", "EmailAddress": "ada@example.com"}]})
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    prepared = requests.Request("POST", url, data=body, headers=headers, auth=sign).prepare()
    assert "oauth_signature" in urlsplit(prepared.url).query
    session = requests.Session()
    return [session.send(prepared).status_code for _ in range(2)]


def webhook(secret):
    """The statuses of a call with the hash of its body, and of one without it."""
    hashed = OAuth1(SETTINGS["key"], secret, signature_method="HMAC-SHA256", force_include_body=True)
    unhashed = OAuth1(SETTINGS["key"], secret, signature_method="HMAC-SHA256")
    url = f"{SETTINGS['origin']}/outcomes"
    return [requests.post(url, json={"event": "paid"}, auth=auth).status_code for auth in (hashed, unhashed)]


send = {"outcome": outcome, "eloqua": eloqua, "webhook": webhook}[SETTINGS["what"]]
print(json.dumps({"right": send(SETTINGS["secret"]), "wrong": send("wrong")}))
