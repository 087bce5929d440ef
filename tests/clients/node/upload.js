'use strict';
// Sends a form that is too large: upload.js URL BYTES [ROOTS]. Prints the status and the first word of the response.

const fs = require('node:fs');
const http = require('node:http');
const https = require('node:https');

const [url, size, roots] = process.argv.slice(2);
const options = {
  method: 'POST',
  headers: {
    'Content-Type': 'application/x-www-form-urlencoded',
    'Content-Length': Number(size) + 2,
  },
};
if (roots) {
  options.ca = fs.readFileSync(roots);
  // The service's own name, whatever its port is in the test.
  options.headers.Host = 'localhost';
}
const request = (roots ? https : http).request(url, options, (response) => {
  let text = '';
  response.on('data', (data) => { text += data; });
  response.on('end', () => {
    console.log(response.statusCode, text.split(/\s/)[0]);
    process.exit(0);
  });
});
request.on('error', (error) => {
  console.log(error.code);
  process.exit(1);
});
// In pieces, as a file is read.
request.write('a=');
let left = Number(size);
const piece = Buffer.alloc(64 * 1024, 'x');
(function write() {
  while (left > 0) {
    const next = piece.subarray(0, Math.min(left, piece.length));
    left -= next.length;
    if (!request.write(next)) {
      request.once('drain', write);
      return;
    }
  }
  request.end();
}());
