"use strict";
// grant, the OAuth middleware of Node's web frameworks, with the provider that the settings name. Its handlers for the
// frameworks all call this function; they only read requests and keep sessions.
const core = require("grant/lib/grant");

exports.flow = async (app) => {
  const provider = app.settings.provider;
  const callback = new URL(app.callback);
  const grant = core({
    config: {
      defaults: { origin: callback.origin, transport: "session" },
      [provider]: { key: app.key, secret: app.secret, callback: callback.pathname, redirect_uri: app.callback, ...app.settings.options },
    },
  });
  const start = await grant({ method: "GET", params: { provider }, query: {}, session: {} });
  if (!start.location.startsWith("https://")) throw new Error(start.location + JSON.stringify(start.session));
  const query = await app.back(start.location);
  const end = await grant({ method: "GET", params: { provider, override: "callback" }, query, session: start.session });
  const { access_token: token, access_secret: secret, raw, error } = end.session.response;
  if (!token) throw new Error(JSON.stringify(error || end.session.response));
  return [token, secret, raw];
};
