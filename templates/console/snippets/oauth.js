// npm install oauth-1.0a
const crypto = require("node:crypto");
const OAuth = require("oauth-1.0a");

const oauth = OAuth({
  consumer: { key: "@KEY@", secret: "@SECRET@" },
  signature_method: "HMAC-SHA1",
  hash_function: (text, key) => crypto.createHmac("sha1", key).update(text).digest("base64"),
});
const request = { url: "@URL@", method: "GET" };
const headers = oauth.toHeader(oauth.authorize(request));
fetch(request.url, { headers }).then(async (response) => console.log(response.status, await response.text()));
