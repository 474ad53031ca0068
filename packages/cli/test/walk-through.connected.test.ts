// Runs the guide's page on local development from nothing: every line of its console blocks, with
// real processes of the built program, in reading order. `vitest -u` updates the page.
import { execFile } from "node:child_process";
import { readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { openRepository } from "zae-limiter/open";
import { afterAll, expect, it, vi } from "vitest";
import { describeUnlessMissing } from "../../limiter/test/support/engine.ts";
import { whyMissing } from "../../limiter/test/support/engine-process.ts";
import { pageAsRun } from "./guide-page.ts";
import { LocalSystems } from "./local-system.ts";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const PAGE = join(ROOT, "docs/guide/local-development.md");
const page = readFileSync(PAGE, "utf8");
const [, traffic = ""] = /^```js\n(.*?)^```$/ms.exec(page) ?? [];

/** The calls of the page: one by the command line, and ten by each of two processes. */
const USED = { requests: 21, total: { rpm: 21, tpm: 500 + 20 * 200 } };

describeUnlessMissing("the guide's page on local development", whyMissing("dynoxide"), () => {
  const systems = new LocalSystems();
  const { folder } = systems;
  afterAll(() => systems.clear());

  it("is what happens", { timeout: 120_000 }, async () => {
    symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
    writeFileSync(join(folder, "traffic.mjs"), traffic);
    // What a shell knows. A profile would win over the credentials that `local env` sets.
    let shell: Record<string, string> = { AWS_PROFILE: "of-an-account" };
    const inShell = async (command: string): Promise<void> => {
      shell = await variablesAfter(command, { ...systems.env, ...shell }, folder);
    };
    const asRun = await pageAsRun(
      page,
      async (words) => {
        const { ZAEL_REPOSITORY: url = "" } = shell;
        if (words[0] === "usage") await vi.waitFor(() => expectCounted(url), POLLING);
        // Another port than that of the page, because tests run beside each other.
        const port = words[1] === "up" ? ["--port", "0"] : [];
        const { code, stdout, stderr } = await systems.run([...words, ...port], shell);
        if (words[1] === "up" && url !== "") shell = { ...shell, ...(await systems.variables()) };
        return { code, printed: ofNoMachine(stdout + stderr, folder) };
      },
      inShell,
    );
    await expect(asRun).toMatchFileSnapshot(PAGE);
    expect(shell).not.toHaveProperty("AWS_PROFILE");
  });
});

const POLLING = { timeout: 60_000, interval: 200 };

/** Fails until everything is counted, and an aggregator has told until when. */
async function expectCounted(url: string): Promise<void> {
  const repository = await openRepository(url, { create: false });
  try {
    expect(await repository.getUsageSummary({ entityId: "key-web" })).toMatchObject(USED);
  } finally {
    await repository.close();
  }
}

/** Runs a command in a shell, and returns the variables that the shell has then. */
async function variablesAfter(
  command: string,
  variables: Readonly<Record<string, string>>,
  folder: string,
): Promise<Record<string, string>> {
  const { PATH = "" } = process.env;
  const env = { ...process.env, ...variables };
  const { stdout } = await promisify(execFile)("sh", ["-c", `${command}\nenv -0`], {
    cwd: folder,
    env: { ...env, PATH: [join(ROOT, "node_modules/.bin"), PATH].join(delimiter) },
  });
  const known = stdout.split("\0").map((line) => /^([^=]+)=([^]*)$/.exec(line) ?? []);
  const found = known.flatMap(([, name = "", value = ""]) =>
    /^(AWS|ZAEL)_/.test(name) && process.env[name] !== value ? [[name, value] as const] : [],
  );
  return Object.fromEntries(found);
}

/** Output without what differs from one run to the next. */
function ofNoMachine(output: string, folder: string): string {
  return output
    .replaceAll(join(folder, "state"), "~/.local/state/zae-limiter/local")
    .replaceAll(folder, ".")
    .replaceAll(/127\.0\.0\.1:\d+/g, "127.0.0.1:8000")
    .replaceAll(/\d{4}-\d\d-01 00:00:00Z/g, "2026-11-01 00:00:00Z")
    .replaceAll(/\d{4}-\d\d-\d\d (?!00:00:00)[\d:]{8}Z/g, "2026-11-15 06:30:00Z")
    .replace(/^(Pid +)\d+$/m, "$14242")
    .replace(/^( *Node +)v\S+$/m, "$1v24.11.0")
    .replace(/^ *Notice .*\n/m, "")
    .replace(/^( *Reachable +yes, in) \d+ ms$/m, "$1 5 ms")
    .replace(/^( *Items +)\d+$/m, "$111")
    .replace(/\/stream\/\S+/, "/stream/2026-11-15T06:30:00.000")
    .replace(/lag \d+ s, \d+ counted/, "lag 0 s, 0 counted");
}
