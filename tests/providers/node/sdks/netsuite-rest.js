"use strict";
const NetSuite = require("netsuite-rest");

exports.calls = async (app) => {
  const client = new NetSuite({
    realm: "1234567_SB1",
    consumer_key: app.key,
    consumer_secret_key: app.secret,
    token: app.token,
    token_secret: app.tokenSecret,
  });
  await app.call("orders", () => client.request({ path: `record/v1/salesOrder?q=${encodeURIComponent(app.tricky)}&fields=` }));
  await app.call("query", () => client.request({ path: "query/v1/suiteql?limit=10", method: "POST", body: JSON.stringify({ q: app.tricky }) }));
  await app.call("delete", () => client.request({ path: "record/v1/customer/7", method: "DELETE" }));
};
