// versitygw, an S3 that checks signatures and checksums, for the tests of the archive: built with
// Go once (two minutes), started on 127.0.0.1 only. Tests use it with ZAEL_S3_ENGINE=versitygw.
//
//   node tools/versitygw.mjs              builds it, then prints where it is
//   node tools/versitygw.mjs --port 5000  also runs it until it is interrupted
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { buildAside } from "./build-aside.mjs";

const VERSION = "1.8.0";

const folder = fileURLToPath(new URL(`../.cache/versitygw-${VERSION}`, import.meta.url));

/** Whether it was built: tests ask, and never build by themselves. */
export function isVersitygwInstalled() {
  return existsSync(folder);
}

/** Builds it, unless that was done. */
export function installVersitygw() {
  return buildAside(folder, (draft) => {
    const module = `github.com/versity/versitygw/cmd/versitygw@v${VERSION}`;
    execFileSync("go", ["install", module], {
      env: { ...process.env, GOBIN: draft },
      stdio: ["ignore", "inherit", "inherit"],
    });
  });
}

/** Starts it on a new folder, which is removed when it ends. */
export function startVersitygw(port, options = {}) {
  const data = mkdtempSync(join(tmpdir(), "versitygw-"));
  const credentials = ["--access", "local", "--secret", "local"];
  const place = ["--port", `127.0.0.1:${port}`, "posix", data];
  const server = spawn(join(folder, "versitygw"), [...credentials, ...place], options);
  server.once("exit", () => rmSync(data, { recursive: true, force: true }));
  return server;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const [option, port] = process.argv.slice(2);
  console.log(`versitygw ${VERSION} is in ${installVersitygw()}`);
  if (option === "--port") startVersitygw(port, { stdio: "inherit" });
}
