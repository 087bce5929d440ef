"""A learning platform with the PyPI library lti: a page of a course that opens an activity in a frame, the page to which a
launch leads back, and an outcome service. Takes a JSON object with the activities, prints `PORT <number>`."""

import html
import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from unittest.mock import patch
from urllib.parse import parse_qs, urlsplit

from lti import OutcomeRequest, OutcomeResponse, ToolConsumer

SETTINGS = json.loads(sys.argv[1])
SCORES = []


def launch_form(activity, host):
    """The form that opens an activity, signed now or earlier."""
    parameters = {
        "lti_version": "LTI-1p0",
        "resource_link_id": "7",
        "context_id": "biology",
        "user_id": "42",
        "roles": "Learner",
        "lis_person_name_given": "Ada",
        **activity.get("parameters", {}),
    }
    if activity.get("returns"):
        parameters["launch_presentation_return_url"] = f"http://{host}/return?course=7"
    tool = ToolConsumer(activity["key"], activity["secret"], params=parameters, launch_url=activity["url"])
    real = time.time
    with patch("time.time", lambda: real() - activity.get("seconds_ago", 0)):
        fields = tool.generate_launch_data()
    hidden = "".join(
        f'<input type="hidden" name="{html.escape(name)}" value="{html.escape(str(value))}">' for name, value in fields.items()
    )
    return f'<form method="post" action="{html.escape(activity["url"])}" target="activity">{hidden}<button id="open">Open</button></form>'


class Platform(BaseHTTPRequestHandler):
    def respond(self, text, content_type="text/html; charset=utf-8"):
        body = text.encode() if isinstance(text, str) else text
        self.send_response(200)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        url = urlsplit(self.path)
        if url.path == "/return":
            told = parse_qs(url.query)
            rows = "".join(f'<p id="{name}">{html.escape(values[0])}</p>' for name, values in told.items())
            return self.respond(f"<!doctype html><title>Back</title>{rows}")
        if url.path == "/scores":
            return self.respond(json.dumps(SCORES), "application/json")
        activity = SETTINGS["activities"].get(url.path.strip("/"))
        if activity is None:
            return self.respond("")
        form = launch_form(activity, self.headers["Host"])
        self.respond(f'<!doctype html><title>Course</title>{form}<iframe name="activity" width="800" height="500"></iframe>')

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        request = OutcomeRequest()
        request.process_xml(body)
        SCORES.append([request.operation, str(request.lis_result_sourcedid), request.score, self.headers["X-Auth-Consumer"]])
        response = OutcomeResponse(message_identifier=request.message_identifier)
        response.code_major, response.severity = "success", "status"
        response.operation = request.operation
        self.respond(response.generate_response_xml(), "application/xml")

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Platform)
print(f"PORT {server.server_port}", flush=True)
server.serve_forever()
