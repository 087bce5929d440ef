"use strict";
// passport-trello on passport-oauth1, the base of all strategies for Passport that speak OAuth 1.0a.
const { Strategy } = require("passport-trello");

function strategy(app) {
  const options = { consumerKey: app.key, consumerSecret: app.secret, callbackURL: app.callback, trelloParams: { scope: "read,write", name: "Shop", expiration: "never" } };
  return new Strategy(options, (token, secret, profile, done) => done(null, { token, secret, profile }));
}

/** What Passport does for a strategy: a request comes, and one of these ends it. */
function authenticate(made, request) {
  return new Promise((resolve, reject) => {
    const one = Object.create(made);
    one.redirect = (url) => resolve({ url });
    one.success = (user) => resolve({ user });
    one.fail = (why) => reject(new Error(`refused: ${JSON.stringify(why)}`));
    one.error = (error) => reject(error.oauthError ? new Error(`${error.message}: ${error.oauthError.data}`) : error);
    one.authenticate(request, {});
  });
}

exports.flow = async (app) => {
  const made = strategy(app);
  const session = {};
  const { url } = await authenticate(made, { query: {}, session });
  const query = await app.back(url);
  const { user } = await authenticate(made, { query, session });
  return [user.token, user.secret, user.profile];
};
