// Runs the guide's page on the command line: every `$ zae-limiter …` line of its console blocks, in
// reading order, on one fresh file, with a clock that stands still. The page must show below each
// line exactly what it prints, and its tables of options and commands are those of the commands'
// own help; `vitest -u` updates the page.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { openRepository } from "zae-limiter/open";
import { ManualClock } from "zae-limiter/testing";
import { afterAll, expect, it } from "vitest";
import { zaeLimiter } from "./command-line.ts";
import { withReference } from "./command-reference.ts";
import { pageAsRun } from "./guide-page.ts";

const GUIDE = fileURLToPath(new URL("../../../docs/guide", import.meta.url));
const PAGE = join(GUIDE, "command-line.md");
const page = readFileSync(PAGE, "utf8");
const folder = mkdtempSync(join(tmpdir(), "zae-limiter-guide-"));

/**
 * What the page shows in place of the ids of namespaces, which are random. Each is as long as an
 * id, so that tables stay aligned.
 */
const NAMES_OF_IDS: Readonly<Record<string, string>> = {
  default: "id-of-first",
  "tenant-alpha": "id-of-alpha",
};

afterAll(() => rmSync(folder, { recursive: true }));

it(
  "every command on the page exits and prints as the page shows",
  { timeout: 30_000 },
  async () => {
    const clock = new ManualClock(Date.parse("2026-11-15T06:30:00Z"));
    const open: typeof openRepository = (_url, options) =>
      openRepository(`sqlite:${folder}/limits.db`, { ...options, clock });
    const manifest = join(folder, "limits.yaml");
    writeFileSync(manifest, /^```yaml\n(# limits\.yaml\n.*?)^```$/ms.exec(page)![1]!);
    const names = new Map([["limits.yaml", manifest]]);
    const asRun = await pageAsRun(page, async (words) => {
      let output = "";
      const { code } = await zaeLimiter(
        words.map((word) => names.get(word) ?? word),
        {
          open,
          env: { ZAEL_REPOSITORY: "sqlite:./limits.db" },
          nowMs: () => clock.now(),
          onOutput: (text) => (output += text),
        },
      );
      const repository = await open("", { create: false });
      for (const { name, namespaceId } of await repository.listNamespaces())
        names.set(NAMES_OF_IDS[name]!, namespaceId);
      await repository.close();
      const printed = ofNoMachine(output);
      return {
        code,
        printed: [...names].reduce((all, [name, id]) => all.replaceAll(id, name), printed),
      };
    });
    await expect(withReference(asRun)).toMatchFileSnapshot(PAGE);
  },
);

/** Output without what differs from one machine to the next. */
function ofNoMachine(output: string): string {
  return output
    .replaceAll(folder, ".")
    .replace(/^(Driver +)\S+$/m, "$1node:sqlite")
    .replace(/^(Node +)v\S+$/m, "$1v24.11.0");
}
