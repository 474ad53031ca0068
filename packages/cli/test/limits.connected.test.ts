import { expect, it } from "vitest";
import { openRepository } from "zae-limiter/open";
import { describeWithEngine, freshTableName } from "../../limiter/test/support/engine.ts";
import { zaeLimiter, type Outcome } from "./command-line.ts";
import { manifestFiles } from "./manifest-file.ts";

const manifest = manifestFiles();

describeWithEngine("limits from files, in a table", (engine) => {
  it("are planned, applied once, found equal, and found changed by hand [W-64]", async () => {
    const endpoint = encodeURIComponent(engine().endpointUrl);
    const url = `dynamodb://eu-west-1/${freshTableName()}?endpoint=${endpoint}`;
    const run = (line: string): Promise<Outcome> =>
      zaeLimiter(line, { open: openRepository, env: { ZAEL_REPOSITORY: url } });
    const file = manifest({
      namespace: "team-a",
      system: { limits: { rpm: { capacity: 5, burst: 50 } } },
      entities: {
        acme: {},
        "key-1": { parent: "acme", resources: { "gpt-4": { limits: { tpm: 1 } } } },
      },
    });

    expect(await run(`limits plan -f ${file}`)).toMatchObject({ code: 1, stdout: "" });
    expect(await run(`limits apply -f ${file} --yes`)).toMatchObject({
      code: 0,
      stdout:
        "Registered namespace team-a.\nApplied to team-a: 4 created, 0 updated, 0 deleted, 0 unchanged.\n",
    });
    const repository = await openRepository(url, { create: false, namespace: "team-a" });
    const { revision } = await repository.getProvisionerState();
    for (const verb of ["plan", "diff", "apply"])
      expect(await run(`limits ${verb} -f ${file}`), verb).toEqual({
        code: 0,
        stdout: "Nothing to change in team-a: 4 unchanged.\n",
        stderr: "",
      });
    expect((await repository.getProvisionerState()).revision).toBe(revision);

    await run("system set-defaults rpm:7 -N team-a");
    const { code, stdout } = await run(`limits diff -f ${file}`);
    expect(code).toBe(3);
    expect(stdout).toMatch(/^system +limits\.rpm +7\/min +5\/min:50 +drift$/m);
    await repository.close();
  });
});
