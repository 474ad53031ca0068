#!/usr/bin/env node
// Committed, so that npm links the command when a clone is installed, before anything is built.
import { existsSync } from "node:fs";

const main = new URL("../dist/main.js", import.meta.url);
if (existsSync(main)) {
  await import(main.href);
} else {
  console.error("zae-limiter is not built yet. Run: npm run build");
  process.exitCode = 1;
}
