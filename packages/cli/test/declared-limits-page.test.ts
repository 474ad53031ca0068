// Runs the commands of the guide's page on declared limits in a copy of the example that it shows,
// as guide.test.ts does with the page on the command line; `vitest -u` updates the page.
import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { openRepository } from "zae-limiter/open";
import { ManualClock } from "zae-limiter/testing";
import { afterAll, expect, it } from "vitest";
import { zaeLimiter } from "./command-line.ts";
import { pageAsRun } from "./guide-page.ts";

const PAGE = fileURLToPath(new URL("../../../docs/guide/declared-limits.md", import.meta.url));
const EXAMPLE = fileURLToPath(new URL("../../../examples/declared-limits", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "zae-limiter-declared-"));

afterAll(() => rmSync(folder, { recursive: true }));

// The page has commands of a shell.
it.skipIf(process.platform === "win32")(
  "every command on the page exits and prints as the page shows",
  async () => {
    cpSync(EXAMPLE, folder, { recursive: true });
    const clock = new ManualClock(Date.parse("2026-11-15T06:30:00Z"));
    const open: typeof openRepository = (_url, options) =>
      openRepository(`sqlite:${folder}/limits.db`, { ...options, clock });
    const env: Record<string, string> = {};
    const asRun = await pageAsRun(
      readFileSync(PAGE, "utf8"),
      async (words) => {
        const { code, stdout, stderr } = await zaeLimiter(words.map(inFolder), {
          open,
          env,
          nowMs: () => clock.now(),
        });
        // An apply that ends well has repeated the plan there.
        const printed = (code === 0 ? stdout : stderr + stdout).replaceAll(`${folder}/`, "");
        return { code, printed: printed.replace(/^(production +)\S{11}$/m, "$1id-of-first") };
      },
      async (command) => {
        for (const [, name, value] of command.matchAll(/(ZAEL_\w+)=(\S+)/g)) env[name!] = value!;
        execFileSync("bash", ["-c", command], { cwd: folder });
      },
    );
    await expect(asRun).toMatchFileSnapshot(PAGE);
  },
);

/** The page's commands run in the folder of the example, and this process elsewhere. */
function inFolder(word: string, index: number, words: readonly string[]): string {
  return ["-f", "-o"].includes(words[index - 1] ?? "") ? join(folder, word) : word;
}
