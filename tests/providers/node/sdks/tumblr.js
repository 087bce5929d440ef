"use strict";
const fs = require("fs");
const tumblr = require("tumblr.js");

exports.calls = async (app) => {
  const client = tumblr.createClient({
    consumer_key: app.key,
    consumer_secret: app.secret,
    token: app.token,
    token_secret: app.tokenSecret,
  });
  await app.call("who", () => client.userInfo());
  await app.call("posts", () => client.blogPosts("blog", { tag: app.tricky, offset: 0 }));
  await app.call("text", () => client.createLegacyPost("blog", { type: "text", title: app.tricky, body: "", tags: "a,b c" }));
  await app.call("neue", () => client.createPost("blog", { content: [{ type: "text", text: app.tricky }], tags: ["a", "b c"] }));
  const media = fs.createReadStream(__filename, { end: 11 });
  await app.call("photo", () => client.createPost("blog", { content: [{ type: "image", media }] }));
};
