// Runs the guide's page on deployment: every `$ zae-limiter …` line, in reading order, on the
// scripted AWS. `vitest -u` updates the page.
import { DynamoDBClient, UpdateItemCommand } from "@aws-sdk/client-dynamodb";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { DynamoRepository } from "zae-limiter/dynamodb";
import { openRepository } from "zae-limiter/open";
import { expect, it } from "vitest";
import { freshTableName } from "../../limiter/test/support/engine.ts";
import { heartbeatUpdate } from "../../limiter/src/repository/dynamodb/items/heartbeat-item.ts";
import { describeWithAws } from "../../infra/test/support/describe-with-aws.ts";
import type { ScriptedAws } from "../../infra/test/support/scripted-aws/scripted-aws.ts";
import { zaeLimiter } from "./command-line.ts";
import { pageAsRun } from "./guide-page.ts";

const PAGE = fileURLToPath(new URL("../../../docs/guide/deployment.md", import.meta.url));
const page = readFileSync(PAGE, "utf8");
const NOW_MS = Date.parse("2026-11-15T06:30:00Z");
/** Soon after the scripted AWS has deployed a stack. */
const SOON_MS = Date.parse("2026-01-01T00:05:00Z");

/** What Lambda says in an account that may run a thousand functions at once. */
const TOO_MUCH_CONCURRENCY =
  "Specified ReservedConcurrentExecutions for function decreases account's " +
  "UnreservedConcurrentExecution below its minimum value of [100].";

describeWithAws("the page on deployment", (aws) => {
  it("every command exits and prints as the page shows", { timeout: 60_000 }, async () => {
    const asRun = await pageAsRun(page, async (words) => {
      if (words.includes("950"))
        aws().cloudFormation.failAt("AggregatorFunction", TOO_MUCH_CONCURRENCY);
      const place = ["--region", "eu-west-1", "--endpoint-url", aws().endpointUrl];
      const { code, stdout, stderr } = await zaeLimiter([...words, ...place], {
        open: openRepository,
        nowMs: () => NOW_MS,
        env: { ZAEL_REPOSITORY: "" },
      });
      if (stdout.includes("created")) await writeHeartbeat(aws());
      return { code, printed: ofNoMachine(shorten(stderr) + stdout) };
    });
    await expect(asRun).toMatchFileSnapshot(PAGE);
  });

  it("the commands of the README lead from nothing to what its program opens", async () => {
    const readme = readFileSync(new URL("../../../README.md", import.meta.url), "utf8");
    const [, section = ""] = /^## Deploy it\n([^]*?)^## /m.exec(readme)!;
    const [, url = ""] = /ZAEL_REPOSITORY=(\S+)/.exec(section)!;
    expect(url).toBe("dynamodb://eu-west-1/limits");
    const stack = freshTableName();
    const repository = `${url.replace("limits", stack)}?endpoint=${aws().endpointUrl}`;
    const lines = section.matchAll(/^zae-limiter ([^#\n]*)/gm);
    const commands = [...lines].map(([, words = ""]) => words.trim());
    expect(commands[0]).toBe("deploy");
    for (const command of commands) {
      const env = { ZAEL_REPOSITORY: repository };
      const setup = { open: openRepository, env, nowMs: () => SOON_MS };
      const { code, stderr } = await zaeLimiter(command, setup);
      expect({ command, code }, stderr).toEqual({ command, code: 0 });
    }
    const place = { stack, endpointUrl: aws().endpointUrl, region: "eu-west-1" };
    const opened = await DynamoRepository.open("my-team", { ...place, provisioning: "never" });
    expect(section).toContain(
      'DynamoRepository.open("my-team", { stack: "limits", provisioning: "never" })',
    );
    expect((await opened.getSystemDefaults()).limits).toHaveLength(2);
    await opened.close();
  });
});

/** What the function does each minute: it tells until when usage is counted. */
async function writeHeartbeat({ endpointUrl }: ScriptedAws): Promise<void> {
  const client = new DynamoDBClient({
    endpoint: endpointUrl,
    region: "eu-west-1",
    credentials: { accessKeyId: "test", secretAccessKey: "test" },
  });
  const beat = { countedUntilMs: NOW_MS - 20_000, seenMs: NOW_MS, writtenBy: "aggregator" };
  const input = { TableName: "limits", ...heartbeatUpdate(beat) };
  await client.send(new UpdateItemCommand(input as never));
  client.destroy();
}

/** The most changes or events in a row that a reader wants to see. */
const MOST_IN_A_ROW = 8;

/** Of many changes or events in a row, the first and the last. */
function shorten(text: string): string {
  const rows: string[][] = [];
  for (const line of text.split("\n")) {
    const last = rows.at(-1);
    if (last !== undefined && getKind(last[0]!) === getKind(line)) last.push(line);
    else rows.push([line]);
  }
  return rows.flatMap(firstAndLast).join("\n");
}

function firstAndLast(row: readonly string[]): readonly string[] {
  return row.length > MOST_IN_A_ROW ? row.slice(0, 3).concat("…", row.slice(-2)) : row;
}

/** A row of a table of changes, an event, or anything else. */
function getKind(line: string): "change" | "event" | "other" {
  if (/^(add|change|adopt|REPLACE|REMOVE) /.test(line)) return "change";
  return /^[A-Z]+_[A-Z_]+ {2}/.test(line) ? "event" : "other";
}

/** Output without what differs from one machine, moment or build to the next. */
function ofNoMachine(output: string): string {
  return output
    .replaceAll(/\?endpoint=\S+/g, "")
    .replace(/in \d+ ms$/m, "in 4 ms")
    .replace(/^( +Node +)v\S+$/m, "$1v24.11.0")
    .replace(/^( +Items +).*$/m, "$14")
    .replace(/^( +Size +).*$/m, "$1812 bytes")
    .replace(/table\/limits\/stream\/\S+/, "table/limits/stream/2026-11-15T06:00:00.000")
    .replaceAll("dynamodb:dynoxide:000000000000:", "dynamodb:eu-west-1:123456789012:")
    .replace(/^(Bytes +)[\d,]+$/m, "$1224,684")
    .replace(/^(SHA-256 +)[0-9a-f]{64}$/m, `$1${"0123456789abcdef".repeat(4)}`);
}
