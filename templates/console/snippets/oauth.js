// npm install oauth-1.0a
const crypto = require("node:crypto");
const OAuth = require("oauth-1.0a");

const oauth = OAuth({
  consumer: { key: "@KEY@", secret: "@SECRET@" },
  signature_method: "HMAC-SHA1",
  hash_function: (text, key) => crypto.createHmac("sha1", key).update(text).digest("base64"),
});
const request = { url: "@URL@", method: "GET" };  @api
const request = { url: "@URL@", method: "GET", data: { oauth_callback: "@CALLBACK@" } };  @flow
const headers = oauth.toHeader(oauth.authorize(request));  @api
const headers = oauth.toHeader({ ...oauth.authorize(request), ...request.data });  @flow
fetch(request.url, { headers }).then(async (response) => {
  const text = await response.text();
  console.log(response.status, text);
  console.log("Open @OPEN@" + new URLSearchParams(text).get("oauth_token"));  @flow
});
