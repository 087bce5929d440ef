"use strict";
const Discogs = require("disconnect").Client;

exports.flow = async (app) => {
  const oauth = new Discogs().oauth();
  oauth.setConfig(app.settings.options);
  const [request] = await app.promise((done) => oauth.getRequestToken(app.key, app.secret, app.callback, done));
  const back = await app.back(request.authorizeUrl);
  const [token] = await app.promise((done) => oauth.getAccessToken(back.oauth_verifier || "none", done));
  return [token.token, token.tokenSecret, {}];
};

exports.calls = async (app) => {
  const client = new Discogs("Shop/1.0", {
    method: "oauth",
    level: 2,
    consumerKey: app.key,
    consumerSecret: app.secret,
    token: app.token,
    tokenSecret: app.tokenSecret,
  });
  const search = client.database().search.bind(client.database());
  await app.call("who", () => app.promise((done) => client.getIdentity(done)));
  await app.call("search", () => app.promise((done) => search({ query: app.tricky, artist: "" }, done)));
  await app.call("want", () => app.promise((done) => client.user().wantlist().addRelease("alice", 1, { notes: app.tricky }, done)));
};
