# The operator's OAuth 2 server, and the browser of a user of it.
(python3 "$PROJECT/tests/clients/python/oauth2_server.py" "$SERVER" 2> oauth2.log &)
until curl -so /dev/null "http://127.0.0.1:$SERVER/jwks.json"; do sleep 0.1; done
user() {
  curl -s -o /dev/null -w '%{redirect_url}\n' --data-urlencode user=ada --data-urlencode 'password=enchantress of numbers' "$1"
}
# The API, countersign and the access token of the first hour.
cat > api.py <<END
import http.server

class Api(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        text = "hello {X-Auth-User}, {X-Auth-Consumer} has {X-Auth-Permissions}\\n".format(**self.headers)
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

http.server.ThreadingHTTPServer(("127.0.0.1", $API), Api).serve_forever()
END
python3 api.py 2> api.log &
cat > config.toml <<END
[listen]
address = "127.0.0.1:$PUBLIC"

[upstream]
api_url = "http://127.0.0.1:$API"

[admin]
listen = "127.0.0.1:$ADMIN"

[[permission]]
name = "members.read"

[[operation]]
path = "/members/{id}"
permission = "members.read"
END
countersign serve 2> serve.log &
until countersign health --ready 2> /dev/null; do sleep 0.1; done
countersign consumer add --name 'Photo printer' --key printer --secret of-the-printer --permission members.read > consumer
printf 'enchantress of numbers\n' | countersign user add ada --id ada --password-stdin --permanent > user
countersign token issue --consumer printer --user ada --json > token.json
