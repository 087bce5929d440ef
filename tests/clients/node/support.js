'use strict';
// Shared by both scripts: reading the settings, the person's part, printing the report.

const http = require('node:http');
const readline = require('node:readline');

const settings = JSON.parse(process.argv[2]);

const say = (word, text) => process.stdout.write(`${word} ${text}\n`);

/** Starts listening for the browser, or prepares to read what a user types. */
async function callback() {
  if (settings.callback === 'oob') {
    const lines = readline.createInterface({ input: process.stdin });
    const typed = new Promise((resolve) => lines.once('line', resolve));
    return {
      address: 'oob',
      back: async () => {
        const verifier = await typed;
        lines.close();
        return { oauth_verifier: verifier };
      },
    };
  }
  let arrived;
  const query = new Promise((resolve) => { arrived = resolve; });
  const server = http.createServer((request, response) => {
    const url = new URL(request.url, 'http://127.0.0.1');
    response.setHeader('Connection', 'close');
    response.statusCode = url.pathname === '/callback' ? 200 : 404;
    response.end('Thank you. You can close this window.');
    if (url.pathname === '/callback') arrived(Object.fromEntries(url.searchParams));
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    address: `http://127.0.0.1:${server.address().port}/callback?from=node`,
    back: async () => {
      const came = await query;
      server.close();
      return came;
    },
  };
}

/** Sends exactly this request and resolves to its status and body. */
function send(method, url, headers, body) {
  return new Promise((resolve, reject) => {
    const request = http.request(url, { method, headers }, (answer) => {
      let text = '';
      answer.on('data', (piece) => { text += piece; });
      answer.on('end', () => resolve({ status: answer.statusCode, text }));
    });
    request.on('error', reject);
    request.end(body);
  });
}

function run(main) {
  main().then(
    (report) => say('REPORT', JSON.stringify(report)),
    (error) => {
      process.stderr.write(`${error.stack || JSON.stringify(error)}\n`);
      process.exitCode = 1;
    },
  );
}

module.exports = { settings, say, callback, send, run };
