# pip install requests-oauthlib
from urllib.parse import parse_qsl  @flow
from requests_oauthlib import OAuth1Session

session = OAuth1Session("@KEY@", client_secret="@SECRET@")  @api
session = OAuth1Session("@KEY@", client_secret="@SECRET@", callback_uri="@CALLBACK@")  @flow
response = session.get("@URL@")
print(response.status_code, response.text)
print("Open @OPEN@" + dict(parse_qsl(response.text))["oauth_token"])  @flow
