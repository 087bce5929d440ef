"use strict";
const fs = require("fs");
const path = require("path");
const JiraClient = require("jira-connector");

const host = "jira.example.com";

function oauth(app, more) {
  return { host, oauth: { consumer_key: app.key, private_key: app.settings.options.private_key, callback_url: app.callback, ...more } };
}

exports.flow = async (app) => {
  const [request] = await app.promise((done) => JiraClient.oauth_util.getAuthorizeURL(oauth(app), done));
  const back = await app.back(request.url);
  const exchange = oauth(app, { token: request.token, token_secret: request.token_secret, oauth_verifier: back.oauth_verifier || "none" });
  const [token, secret] = await app.promise((done) => JiraClient.oauth_util.swapRequestTokenWithAccessToken(exchange, done));
  return [token, secret, {}];
};

exports.calls = async (app) => {
  const jira = new JiraClient(oauth(app, { token: app.token, token_secret: app.tokenSecret }));
  await app.call("who", () => jira.myself.getMyself());
  await app.call("search", () => jira.search.search({ jql: app.tricky, fields: ["a", "b"], method: "GET" }));
  await app.call("create", () => jira.issue.createIssue({ fields: { summary: app.tricky } }));
  const filename = path.join(process.env.HOME, "a.txt");
  fs.writeFileSync(filename, "text");
  await app.call("attach", () => jira.issue.addAttachment({ issueKey: "X-1", filename }));
};
