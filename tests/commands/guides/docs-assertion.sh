# An API that prints the assertion, and an access token.
cat > api.py <<END
import base64
import http.server

class Api(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        header_and_claims = self.headers.get("X-Auth-Assertion", "").split(".")[:2]
        body = b"".join(base64.urlsafe_b64decode(part + "==") + b"\\n" for part in header_and_claims)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

http.server.ThreadingHTTPServer(("127.0.0.1", $API), Api).serve_forever()
END
(python3 api.py 2> api.log &)
until curl -so /dev/null http://127.0.0.1:$API/; do sleep 0.1; done
cat > config.toml <<END
upstream.api_url = "http://127.0.0.1:$API"
END
countersign consumer add --name 'Photo printer' --key printer --secret of-the-printer > consumer
echo 'enchantress of numbers' | countersign user add ada --id ada --password-stdin --permanent > user
token=$(countersign token issue --consumer printer --user ada --json | python3 -c 'import json; print(json.load(open(0))["token"])')
