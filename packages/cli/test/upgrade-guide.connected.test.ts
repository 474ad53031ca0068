// Runs the guide's page on upgrades, on tables that the Python zae-limiter wrote. `vitest --update`
// updates the page.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { DynamoRepository } from "zae-limiter/dynamodb";
import { openRepository } from "zae-limiter/open";
import { expect, it } from "vitest";
import { describeWithEngine, freshTableName } from "../../limiter/test/support/engine.ts";
import { loadPythonTable, pythonTable } from "../../upgrade/test/support/python-table.ts";
import { openTransport } from "../../limiter/test/support/transports.ts";
import { zaeLimiter } from "./command-line.ts";
import { pageAsRun } from "./guide-page.ts";

const PAGE = fileURLToPath(new URL("../../../docs/guide/upgrade.md", import.meta.url));

describeWithEngine("the guide's page on upgrades", (engine) => {
  it("shows what every command prints", { timeout: 60_000 }, async () => {
    const { endpointUrl } = engine();
    const transport = await openTransport("SDK's", engine());
    const limits = freshTableName();
    // Stands for the stack that the page deploys.
    const options = { stack: limits, transport, provisioning: "table" } as const;
    await (await DynamoRepository.open("default", options)).close();
    const tables = new Map([
      ["limits", limits],
      ["python-limits", await loadPythonTable(transport, pythonTable("0.10.3"))],
      ["newer-python-limits", await loadPythonTable(transport, pythonTable("0.17.0"))],
    ]);
    const place = ["--endpoint-url", endpointUrl, "--region", "us-east-1"];
    const asRun = await pageAsRun(readFileSync(PAGE, "utf8"), async (words) => {
      const { code, stdout, stderr } = await zaeLimiter(
        [...words.map((word) => tables.get(word) ?? word), ...place],
        { open: openRepository, env: { ZAEL_REPOSITORY: "" } },
      );
      const printed = [...tables].reduce(
        (all, [name, table]) => all.replaceAll(table, name),
        stdout + stderr,
      );
      return { code, printed };
    });
    transport.close();
    await expect(asRun).toMatchFileSnapshot(PAGE);
  });
});
