# The tool of the guide, before its first step.
cat > tool.py <<'END'
import http.server, sys
class Tool(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        body = f"launched by {self.headers['X-Auth-Consumer']} in {self.headers['X-LTI-Context']}\n".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    do_GET = do_POST
    def log_message(self, *_): pass
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Tool).serve_forever()
END
python3 tool.py "$API" &
until (exec 3<> "/dev/tcp/127.0.0.1/$API") 2>> /dev/null; do sleep 0.1; done
export COUNTERSIGN__LISTEN__ADDRESS="127.0.0.1:$PUBLIC" COUNTERSIGN__ADMIN__LISTEN="127.0.0.1:$ADMIN"
# The launch of the guide has to reach the tool.
sh() { command sh "$@" | tee launch.out && grep -q 'launched by north-east in biology' launch.out; }
