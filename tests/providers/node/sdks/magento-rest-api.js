"use strict";
const magento = require("magento-rest-api");

exports.calls = async (app) => {
  const client = magento.createClient(
    {
      baseUrl: "https://magento1.example.com",
      consumerKey: app.key,
      consumerSecret: app.secret,
      token: app.token,
      tokenSecret: app.tokenSecret,
    },
    { host: "magento1.example.com" },
  );
  const request = (options) =>
    app.promise((done) =>
      client.request(options, (error, answer, body) => done(error || (answer.statusCode > 299 && new Error(`${answer.statusCode} ${JSON.stringify(body)}`)), body)),
    );
  await app.call("products", () => request({ url: client.makePath("/api/rest/products"), qs: { "filter[name]": app.tricky, page: "" } }));
  await app.call("create", () => request({ url: client.makePath("/api/rest/products"), method: "POST", json: { name: app.tricky } }));
};
