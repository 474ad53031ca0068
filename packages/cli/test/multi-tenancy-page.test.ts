// Runs the commands of the guide's page on tenants, as guide.test.ts does with the page on the
// command line; `vitest -u` updates the page.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { openRepository } from "zae-limiter/open";
import { ManualClock } from "zae-limiter/testing";
import { afterAll, expect, it } from "vitest";
import { zaeLimiter } from "./command-line.ts";
import { pageAsRun } from "./guide-page.ts";

const PAGE = fileURLToPath(new URL("../../../docs/guide/multi-tenancy.md", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "zae-limiter-tenants-"));

afterAll(() => rmSync(folder, { recursive: true }));

it("every command on the page exits and prints as the page shows", async () => {
  const clock = new ManualClock(Date.parse("2026-11-15T06:30:00Z"));
  const open: typeof openRepository = (_url, options) =>
    openRepository(`sqlite:${folder}/limits.db`, { ...options, clock });
  // Ids are random. The page has names for them, by when a namespace was first seen.
  const names = ["id-of-first", "id-of-alpha", "id-of-beta_", "id-of-later"];
  const ids = new Map<string, string>();
  const asRun = await pageAsRun(readFileSync(PAGE, "utf8"), async (words) => {
    const outcome = await zaeLimiter(
      words.map((word) => ids.get(word) ?? word),
      { open, env: { ZAEL_REPOSITORY: "sqlite:./limits.db" }, nowMs: () => clock.now() },
    );
    const repository = await open("", { create: false });
    for (const { namespaceId } of await repository.listNamespaces())
      if (![...ids.values()].includes(namespaceId)) ids.set(names[ids.size]!, namespaceId);
    await repository.close();
    const printed = outcome.stdout + outcome.stderr;
    return {
      code: outcome.code,
      printed: [...ids].reduce((all, [name, id]) => all.replaceAll(id, name), printed),
    };
  });
  await expect(asRun).toMatchFileSnapshot(PAGE);
});
