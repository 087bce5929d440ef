"use strict";
// Runs one SDK as an application would, and leads its connections to the program under test; `../python/run.py` says how.
const dns = require("dns");
const net = require("net");
const readline = require("readline");

const settings = JSON.parse(process.argv[3]);

const realLookup = dns.lookup;
dns.lookup = (host, options, done) => {
  if (typeof options === "function") [options, done] = [{}, options];
  if (settings.hosts.includes(host)) return realLookup("127.0.0.1", options, done);
  if (["127.0.0.1", "localhost"].includes(host)) return realLookup(host, options, done);
  const error = Object.assign(new Error(`${host} is not a host of this test`), { code: "ENOTFOUND" });
  return process.nextTick(done, error);
};

const realConnect = net.Socket.prototype.connect;
net.Socket.prototype.connect = function (...args) {
  // `net.connect` passes its arguments in an array, with the options first.
  const options = Array.isArray(args[0]) ? args[0][0] : args[0];
  if (options && [80, 443].includes(Number(options.port))) {
    const led = { ...options, port: settings.port };
    if (Array.isArray(args[0])) args[0][0] = led;
    else args[0] = led;
  }
  return realConnect.apply(this, args);
};

const input = readline.createInterface({ input: process.stdin });
const lines = input[Symbol.asyncIterator]();

/** The application around an SDK. */
const app = {
  key: settings.consumer_key,
  secret: settings.consumer_secret,
  callback: settings.callback,
  tricky: settings.tricky,
  settings,
  token: null,
  tokenSecret: null,
  calls: {},
  /** Sends the person to the service; returns the address to which the browser came back, or the verifier. */
  async decide(url) {
    console.log("AUTHORIZE", url);
    return (await lines.next()).value;
  },
  /** The same, as the values of that address's query. */
  async back(url) {
    return Object.fromEntries(new URL(await this.decide(url)).searchParams);
  },
  /** Makes a call of the SDK; the error is in the report. */
  async call(name, make) {
    try {
      await make();
      this.calls[name] = null;
    } catch (error) {
      console.error(error);
      this.calls[name] = shown(error);
    }
  },
  /** A promise of what a function with a callback brings. */
  promise(start) {
    return new Promise((resolve, reject) =>
      start((error, ...values) => (error ? reject(error) : resolve(values))),
    );
  },
};

function shown(error) {
  const response = error.response && error.response.data;
  const details = error.data || response || (error.name ? undefined : error);
  return `${error.name || "error"}: ${error.message} ${details ? JSON.stringify(details) : ""}`.trim();
}

async function main() {
  const sdk = require(`./sdks/${process.argv[2]}`);
  const report = {};
  if (sdk.flow) {
    try {
      [app.token, app.tokenSecret, report.token] = await sdk.flow(app);
    } catch (error) {
      console.error(error);
      report.flow = shown(error);
    }
    if (report.token) {
      try {
        report.denied = `not denied: ${JSON.stringify(await sdk.flow(app))}`;
      } catch (error) {
        report.denied = shown(error);
      }
    }
  }
  if (!app.token) [app.token, app.tokenSecret] = [settings.token, settings.token_secret];
  if (sdk.calls) await sdk.calls(app);
  report.calls = app.calls;
  console.log("REPORT", JSON.stringify(report));
}

main().then(
  () => process.exit(0),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
