# The operator's OAuth 2 server, and the browser of a user of it.
(python3 "$PROJECT/tests/clients/python/oauth2_server.py" "$SERVER" 2> oauth2.log &)
until curl -so /dev/null "http://127.0.0.1:$SERVER/jwks.json"; do sleep 0.1; done
user() {
  curl -s -o /dev/null -w '%{redirect_url}\n' --data-urlencode user=ada --data-urlencode 'password=enchantress of numbers' "$1"
}
