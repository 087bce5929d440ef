"use strict";
const { createFlickr } = require("flickr-sdk");

exports.flow = async (app) => {
  const consumer = { consumerKey: app.key, consumerSecret: app.secret };
  const first = createFlickr({ ...consumer, oauthToken: false, oauthTokenSecret: false });
  const { requestToken, requestTokenSecret } = await first.oauth.request(app.callback);
  const back = await app.back(first.oauth.authorizeUrl(requestToken, "write"));
  const second = createFlickr({ ...consumer, oauthToken: requestToken, oauthTokenSecret: requestTokenSecret });
  const { oauthToken, oauthTokenSecret, nsid, username } = await second.oauth.verify(back.oauth_verifier || "none");
  return [oauthToken, oauthTokenSecret, { nsid, username }];
};

exports.calls = async (app) => {
  const { flickr, upload } = createFlickr({
    consumerKey: app.key,
    consumerSecret: app.secret,
    oauthToken: app.token,
    oauthTokenSecret: app.tokenSecret,
  });
  await app.call("who", () => flickr("flickr.test.login", {}));
  await app.call("search", () => flickr("flickr.photos.search", { text: app.tricky, tags: "" }));
  await app.call("meta", () => flickr("flickr.photos.setMeta", { photo_id: "1", title: app.tricky }));
  await app.call("upload", () => upload(new File(["JPEG"], "a.jpg"), { title: app.tricky }));
};
