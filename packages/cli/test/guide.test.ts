// Runs the guide's page on the command line: every `$ zae-limiter …` line of its console blocks, in
// reading order, on one fresh file, with a clock that stands still. The page must show below each
// line exactly what it prints; `vitest -u` updates the page.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { openRepository } from "zae-limiter/open";
import { ManualClock } from "zae-limiter/testing";
import { afterAll, expect, it } from "vitest";
import { verbNames, zaeLimiter } from "./command-line.ts";

const PAGE = fileURLToPath(new URL("../../../docs/guide/command-line.md", import.meta.url));
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
    const rewritten: string[] = [];
    const ids = new Map<string, string>();
    for (const [line, shown] of linesOf(page)) {
      if (shown) continue;
      const command = /^\$ zae-limiter (.*?)(?: +# exit (\d))?$/.exec(line);
      rewritten.push(line);
      if (command === null) continue;
      const [, text = "", code = "0"] = command;
      const words = [...text.matchAll(/"([^"]*)"|(\S+)/g)].map(
        ([, quoted, bare]) => quoted ?? ids.get(bare!) ?? bare!,
      );
      const outcome = await zaeLimiter(words, {
        open,
        env: { ZAEL_REPOSITORY: "sqlite:./limits.db" },
        nowMs: () => clock.now(),
      });
      expect({ line, code: outcome.code }).toEqual({ line, code: Number(code) });
      const printed = ofNoMachine(outcome.stdout + outcome.stderr).trimEnd();
      const repository = await open("", { create: false });
      for (const { name, namespaceId } of await repository.listNamespaces())
        ids.set(NAMES_OF_IDS[name]!, namespaceId);
      await repository.close();
      const named = [...ids].reduce((all, [name, id]) => all.replaceAll(id, name), printed);
      rewritten.push(...named.split("\n"));
    }
    await expect(rewritten.join("\n")).toMatchFileSnapshot(PAGE);
  },
);

it("the page shows every verb", () => {
  const verbs = verbNames();
  expect(verbs.length).toBeGreaterThan(25);
  expect(
    verbs.filter((verb) => !new RegExp(`zae-limiter (--\\S+ \\S+ )?${verb}\\b`).test(page)),
  ).toEqual([]);
});

/** Output without what differs from one machine to the next. */
function ofNoMachine(output: string): string {
  return output
    .replaceAll(folder, ".")
    .replace(/^(Driver +)\S+$/m, "$1node:sqlite")
    .replace(/^(Node +)v\S+$/m, "$1v24.11.0");
}

/** The lines of a page, and whether each is the output of a command above it. */
function* linesOf(text: string): Generator<readonly [line: string, shown: boolean]> {
  let inConsole = false;
  for (const line of text.split("\n")) {
    if (line.startsWith("```")) inConsole = line === "```console";
    yield [line, inConsole && !line.startsWith("```") && !line.startsWith("$ ")];
  }
}
