// Node.js 18, which Debian 12 has, offers this global only by an option; Bruno needs it.
globalThis.crypto ??= require("node:crypto").webcrypto;
