// Runs pages of the guide: every `$ zae-limiter …` line of their console blocks, in reading order,
// on one fresh file, with a clock that stands still. A page must show below each line exactly what
// it prints, and the tables of options and commands are those of the commands' own help;
// `vitest -u` updates the pages.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { openRepository } from "zae-limiter/open";
import { ManualClock } from "zae-limiter/testing";
import { afterEach, beforeEach, expect, it } from "vitest";
import { zaeLimiter } from "./command-line.ts";
import { withReference } from "./command-reference.ts";
import { pageAsRun } from "./guide-page.ts";

const GUIDE = fileURLToPath(new URL("../../../docs/guide", import.meta.url));

let folder: string;
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), "zae-limiter-guide-"))));
afterEach(() => rmSync(folder, { recursive: true }));

/**
 * The pages, and what each shows in place of the ids of namespaces, which are random: by when a
 * namespace was first seen. Each is as long as an id, so that tables stay aligned.
 */
it.each([
  ["command-line.md", ["id-of-first", "id-of-alpha"]],
  ["limit-kinds.md", ["id-of-first"]],
  ["multi-tenancy.md", ["id-of-first", "id-of-alpha", "id-of-beta_", "id-of-later"]],
])(
  "every command on %s exits and prints as the page shows",
  { timeout: 30_000 },
  async (file, namesOfIds) => {
    const path = join(GUIDE, file);
    const page = readFileSync(path, "utf8");
    const clock = new ManualClock(Date.parse("2026-11-15T06:30:00Z"));
    const open: typeof openRepository = (_url, options) =>
      openRepository(`sqlite:${folder}/limits.db`, { ...options, clock });
    const manifest = join(folder, "limits.yaml");
    writeFileSync(manifest, /^```yaml\n(# limits\.yaml\n.*?)^```$/ms.exec(page)?.[1] ?? "");
    const ids: string[] = [];
    const named = (): readonly (readonly [string, string])[] => [
      ["limits.yaml", manifest],
      ...ids.map((id, index) => [namesOfIds[index]!, id] as const),
    ];
    const asRun = await pageAsRun(page, async (words) => {
      let output = "";
      const values = new Map(named());
      const { code } = await zaeLimiter(
        words.map((word) => values.get(word) ?? word),
        {
          open,
          env: { ZAEL_REPOSITORY: "sqlite:./limits.db" },
          nowMs: () => clock.now(),
          onOutput: (text) => (output += text),
        },
      );
      const repository = await open("", { create: false });
      for (const { namespaceId } of await repository.listNamespaces())
        if (!ids.includes(namespaceId)) ids.push(namespaceId);
      await repository.close();
      const printed = ofNoMachine(output);
      return {
        code,
        printed: named().reduce((all, [name, value]) => all.replaceAll(value, name), printed),
      };
    });
    await expect(withReference(asRun)).toMatchFileSnapshot(path);
  },
);

/** Output without what differs from one machine to the next. */
function ofNoMachine(output: string): string {
  return output
    .replaceAll(folder, ".")
    .replace(/^(Driver +)\S+$/m, "$1node:sqlite")
    .replace(/^(Node +)v\S+$/m, "$1v24.11.0");
}
