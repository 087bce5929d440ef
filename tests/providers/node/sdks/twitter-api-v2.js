"use strict";
const { TwitterApi } = require("twitter-api-v2");

exports.flow = async (app) => {
  const consumer = { appKey: app.key, appSecret: app.secret };
  const link = await new TwitterApi(consumer).generateAuthLink(app.callback, { linkMode: "authorize" });
  const back = await app.back(link.url);
  const accessToken = link.oauth_token;
  const client = new TwitterApi({ ...consumer, accessToken, accessSecret: link.oauth_token_secret });
  const token = await client.login(back.oauth_verifier || "none");
  return [token.accessToken, token.accessSecret, { userId: token.userId, screenName: token.screenName }];
};

exports.calls = async (app) => {
  const client = new TwitterApi({
    appKey: app.key,
    appSecret: app.secret,
    accessToken: app.token,
    accessSecret: app.tokenSecret,
  });
  await app.call("who", () => client.v1.verifyCredentials({ include_email: true }));
  await app.call("status", () => client.v1.tweet(app.tricky, { media_ids: ["1", "2"] }));
  await app.call("search", () => client.v1.get("search/tweets.json", { q: app.tricky, lang: "" }));
  await app.call("tweet", () => client.v2.tweet({ text: app.tricky, poll: { options: ["a&b", "ü"], duration_minutes: 5 } }));
  await app.call("media", () => client.v1.uploadMedia(Buffer.from("PNG"), { mimeType: "image/png" }));
  await app.call("delete", () => client.v2.deleteTweet("17"));
};
