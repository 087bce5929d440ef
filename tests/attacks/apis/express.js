// An API on the router of Express: it splits a path at its slashes, and decodes each segment.
"use strict";
const http = require("http");
const path = require("path");
const Router = require(path.join(process.argv[3], "clients/node/node_modules/router"));

const router = Router();
const say = (route) => (request, response) =>
  response.setHeader("X-Route", route).end(route + " " + JSON.stringify(request.params));
router.all("/admin", say("secret"));
router.all("/open/admin", say("secret"));
router.all("/items/:id/secret", say("secret"));
router.all("/items/:id", say("item"));
router.use("/open", say("open"));
router.post("/write/:id", say("write"));
router.get("/report/:id", say("report"));
router.get("/read/*rest", say("read"));
http.createServer((request, response) => router(request, response, () => response.writeHead(404).end("none")))
  .listen(Number(process.argv[2]), "127.0.0.1");
