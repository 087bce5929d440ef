"""The API of a guide: responds with the consumer and with the header fields that the operation adds."""

import http.server
import sys


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"] or 0))
        added = [self.headers[name] for name in ("X-LTI-Context", "X-Instance") if self.headers[name]]
        body = f"from {self.headers['X-Auth-Consumer']}: {', '.join(added)}\n".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST

    def log_message(self, *_):
        pass


http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Receiver).serve_forever()
