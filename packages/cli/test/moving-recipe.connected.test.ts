// Runs the recipe of the guide's page on declared limits: from a SQLite file to a table.
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Limit } from "zae-limiter";
import { openRepository } from "zae-limiter/open";
import { expect, it } from "vitest";
import { describeWithEngine, freshTableName } from "../../limiter/test/support/engine.ts";
import { temporaryFile } from "../../limiter/test/support/temporary-file.ts";
import { zaeLimiter, type Outcome } from "./command-line.ts";

const PAGE = fileURLToPath(new URL("../../../docs/guide/declared-limits.md", import.meta.url));

describeWithEngine("the recipe of moving", (engine) => {
  it("brings limits and entities of a file to a table", async () => {
    const database = temporaryFile();
    const endpoint = encodeURIComponent(engine().endpointUrl);
    const table = `dynamodb://eu-west-1/${freshTableName()}?endpoint=${endpoint}`;
    const run = (line: string): Promise<Outcome> =>
      zaeLimiter(
        line
          .replace("sqlite:./limits.db", `sqlite:${database}`)
          .replace("dynamodb://eu-west-1/limits", table)
          .replace("my-team.yaml", join(dirname(database), "my-team.yaml")),
        { open: openRepository, env: {}, typed: "y\n" },
      );
    const file = await openRepository(`sqlite:${database}`, { namespace: "my-team" });
    await file.setSystemDefaults([Limit.perMinute("rpm", 60)], { onUnavailable: "allow" });
    await file.createEntity("org", { metadata: { plan: "gold" } });
    await file.createEntity("key-1", { parentId: "org", cascade: true });
    await file.close();

    const [exported, deploy, applied, ...more] = listCommands(readFileSync(PAGE, "utf8"));
    expect(deploy).toMatch(/ deploy$/); // no engine can
    expect(more).toEqual([]);
    expect(await run(exported!)).toMatchObject({ code: 0, stderr: "" });
    const outcome = await run(applied!);
    expect(outcome.code, outcome.stderr).toBe(0);
    const both = await Promise.all(
      [`--repository sqlite:./limits.db`, `--repository dynamodb://eu-west-1/limits`].map((from) =>
        run(`${from} --namespace my-team limits export`),
      ),
    );
    expect(both[0]!.stdout).toContain("parent: org");
    expect(both[1]).toEqual(both[0]);
  });
});

function listCommands(page: string): readonly string[] {
  const [, section = ""] = page.split("\n## Moving from SQLite to DynamoDB\n");
  const [, block = ""] = /^```sh\n(.*?)^```$/ms.exec(section) ?? [];
  return [...block.matchAll(/^zae-limiter (.*)$/gm)].map(([, words]) => words!);
}
