"""An API on Werkzeug, the router and the server of Flask: a path is decoded, its slashes are merged, and then it is split."""
import sys

from werkzeug.exceptions import HTTPException
from werkzeug.routing import Map, Rule
from werkzeug.serving import WSGIRequestHandler, make_server
from werkzeug.wrappers import Request, Response

routes = Map([
    Rule("/admin", endpoint="secret"),
    Rule("/open/admin", endpoint="secret"),
    Rule("/items/<id>/secret", endpoint="secret"),
    Rule("/items/<id>", endpoint="item"),
    Rule("/open/<path:rest>", endpoint="open"),
    Rule("/write/<id>", endpoint="write", methods=["POST"]),
    Rule("/report/<id>", endpoint="report", methods=["GET"]),
    Rule("/read/<path:rest>", endpoint="read", methods=["GET"]),
])


@Request.application
def application(request):
    try:
        endpoint, values = routes.bind_to_environ(request.environ).match()
    except HTTPException as error:
        return error
    return Response(f"{endpoint} {values}", headers={"X-Route": endpoint})


class Quiet(WSGIRequestHandler):
    def log(self, *_):
        pass


make_server("127.0.0.1", int(sys.argv[1]), application, request_handler=Quiet).serve_forever()
