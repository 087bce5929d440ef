"use strict";
const Twitter = require("twitter-lite");

exports.flow = async (app) => {
  const client = new Twitter({ consumer_key: app.key, consumer_secret: app.secret });
  const request = await client.getRequestToken(app.callback);
  if (!request.oauth_token) throw new Error(JSON.stringify(request));
  const back = await app.back(`https://api.twitter.com/oauth/authenticate?oauth_token=${request.oauth_token}`);
  const token = await client.getAccessToken({ oauth_token: request.oauth_token, oauth_verifier: back.oauth_verifier || "none" });
  if (!token.oauth_token) throw new Error(JSON.stringify(token));
  return [token.oauth_token, token.oauth_token_secret, token];
};

exports.calls = async (app) => {
  const client = new Twitter({
    consumer_key: app.key,
    consumer_secret: app.secret,
    access_token_key: app.token,
    access_token_secret: app.tokenSecret,
  });
  await app.call("who", () => client.get("account/verify_credentials"));
  await app.call("search", () => client.get("search/tweets", { q: app.tricky, lang: "" }));
  await app.call("status", () => client.post("statuses/update", { status: app.tricky }));
  await app.call("json", () => client.post("direct_messages/events/new", { event: { text: app.tricky } }));
};
