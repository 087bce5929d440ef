'use strict';
// An LTI 1.1 tool with the npm library ims-lti, as it is without a proxy in front: it looks up the secret by oauth_consumer_key of
// the form and checks the signature itself. It reports the score of whoever opens it, and remembers them by a cookie of a frame.
// Prints `PORT <number>`.

const http = require('node:http');
const lti = require('ims-lti');

const { secrets } = JSON.parse(process.argv[2]);
const sessions = new Map();

function page(response, status, text, headers = {}) {
  response.writeHead(status, { 'Content-Type': 'text/html; charset=utf-8', ...headers });
  response.end(`<!doctype html><title>Tool</title><p id="tool">${text}</p>`);
}

async function launch(request, response) {
  const pieces = [];
  for await (const piece of request) pieces.push(piece);
  const body = Object.fromEntries(new URLSearchParams(Buffer.concat(pieces).toString()));
  const key = body.oauth_consumer_key;
  if (!secrets[key]) return page(response, 500, `no secret for ${key}`);
  const provider = new lti.Provider(key, secrets[key]);
  const error = await new Promise((resolve) => { provider.valid_request(request, body, resolve); });
  if (error) return page(response, 500, `the library rejects it: ${error.message}`);
  let reported = 'nothing reported';
  if (provider.outcome_service) {
    const send = (resolve) => { provider.outcome_service.send_replace_result(0.83, (problem, done) => resolve(problem ? problem.message : done)); };
    reported = `reported: ${await new Promise(send)}`;
  }
  const id = String(sessions.size + 1);
  sessions.set(id, `Hello ${provider.username} of ${provider.context_id}, ${reported}`);
  const cookie = `tool_session=${id}; Path=/; HttpOnly; Secure; SameSite=None; Partitioned`;
  response.writeHead(303, { Location: '/activity', 'Set-Cookie': cookie });
  return response.end();
}

const server = http.createServer((request, response) => {
  const path = request.url.split('?')[0];
  if (request.method === 'POST' && path === '/launch') {
    launch(request, response).catch((error) => page(response, 500, String(error)));
  } else {
    const id = /tool_session=(\d+)/.exec(request.headers.cookie || '');
    page(response, 200, (id && sessions.get(id[1])) || 'no cookie came');
  }
});
server.listen(0, '127.0.0.1', () => process.stdout.write(`PORT ${server.address().port}\n`));
