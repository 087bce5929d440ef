"use strict";
const Magento = require("magento-api-rest").default;

exports.calls = async (app) => {
  const client = new Magento({
    url: "https://magento.example.com",
    consumerKey: app.key,
    consumerSecret: app.secret,
    accessToken: app.token,
    tokenSecret: app.tokenSecret,
    sha: 256,
  });
  await app.call("products", () => client.get("products", { name: "a b", $sort: { id: "ASC" }, $perPage: 20 }));
  await app.call("modules", () => client.get("modules"));
  await app.call("create", () => client.post("products", { product: { name: app.tricky, ids: [1, 2] } }));
  await app.call("delete", () => client.delete("products/24-MB01"));
};
