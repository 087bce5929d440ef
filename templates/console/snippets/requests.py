# pip install requests-oauthlib
from requests_oauthlib import OAuth1Session

session = OAuth1Session("@KEY@", client_secret="@SECRET@")
response = session.get("@URL@")
print(response.status_code, response.text)
