"use strict";
const WooCommerce = require("@woocommerce/woocommerce-rest-api").default;

exports.calls = async (app) => {
  const api = new WooCommerce({ url: "http://shop.example.com", consumerKey: app.key, consumerSecret: app.secret });
  await app.call("products", () => api.get("products", { search: app.tricky, per_page: 10, sku: "", include: [1, 2] }));
  await app.call("create", () => api.post("products", { name: app.tricky, tags: [{ id: 1 }] }));
  await app.call("delete", () => api.delete("products/7", { force: true }));
};
