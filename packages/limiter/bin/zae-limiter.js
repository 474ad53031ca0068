#!/usr/bin/env node
// Starts the command line, which is a package of its own, from beside this one or from the project
// that this is called in: some package managers let a package see only what it depends on.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const commandLine = findCli();
if (commandLine === undefined) {
  console.error("The command line is a package of its own: npm install @zae-limiter/cli");
  process.exitCode = 1;
} else {
  await import(pathToFileURL(commandLine).href);
}

function findCli() {
  try {
    return createRequire(import.meta.url).resolve("@zae-limiter/cli/bin/zae-limiter.js", {
      paths: [import.meta.dirname, process.cwd()],
    });
  } catch (error) {
    if (error.code === "MODULE_NOT_FOUND") return undefined;
    throw error;
  }
}
