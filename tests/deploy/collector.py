"""A collector of traces by OTLP over HTTP, as the protocol's own definitions read it. It prints its port, and then each span as JSON on a line.

Its arguments are `failing`, or a certificate and its key, with which it accepts only TLS."""

import json
import ssl
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

FAILING = sys.argv[1:] == ["failing"]


class Collector(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if FAILING or self.path != "/v1/traces" or self.headers["Content-Type"] != "application/x-protobuf":
            self.respond(500, b"")
            return
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            of_process = MessageToDict(resource.resource)
            for scope in resource.scope_spans:
                for span in scope.spans:
                    told = MessageToDict(span)
                    told["ids"] = [span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex()]
                    told["resource"] = of_process["attributes"]
                    print(json.dumps(told), flush=True)
        self.respond(200, ExportTraceServiceResponse().SerializeToString())

    def respond(self, status, body):
        self.send_response(status)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
if len(sys.argv) == 3:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*sys.argv[1:])
    server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_port, flush=True)
server.serve_forever()
