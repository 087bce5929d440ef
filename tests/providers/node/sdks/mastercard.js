"use strict";
const https = require("https");
const oauth = require("mastercard-oauth1-signer");

const HOST = "https://api.mastercard.com";

exports.calls = async (app) => {
  const { private_key: key, method: signatureMethod } = app.settings.options;
  const send = (method, path, body) =>
    new Promise((resolve, reject) => {
      const authorization = oauth.getAuthorizationHeader(HOST + path, method, body, app.key, key, signatureMethod);
      const headers = { Authorization: authorization, ...(body && { "Content-Type": "application/json" }) };
      const request = https.request(HOST + path, { method, headers }, (response) => {
        response.resume();
        response.on("end", () => (response.statusCode < 300 ? resolve() : reject(new Error(response.statusCode))));
      });
      request.on("error", reject);
      request.end(body);
    });
  // It signs the query as it is written, and leaves ' ( ) and a second * in it as they are.
  const query = `q=${encodeURIComponent("ü + & % =")}&e=`;
  await app.call("get", () => send("GET", `/locations/atms?${query}`));
  await app.call("post", () => send("POST", "/payments", JSON.stringify({ name: app.tricky })));
  await app.call("empty", () => send("DELETE", "/payments/7"));
};
