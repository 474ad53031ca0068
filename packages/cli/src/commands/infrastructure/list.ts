import type { Command } from "commander";
import type { StackSummary } from "@zae-limiter/infra";
import type { Screen } from "../../output/screen.ts";
import { tableText } from "../../output/table.ts";
import { timeText } from "../../output/text.ts";
import type { Session } from "../support/session.ts";
import { addVerb } from "../support/verb.ts";

/** Adds `list`, which shows the stacks of a region. */
export function addListCommand(program: Command, session: Session): void {
  addVerb(program, {
    usage: "list",
    summary: "Lists the stacks of zae-limiter in a region.",
    examples: ["list --region eu-west-1", "list --json"],
  }).action(async (_options: object, command: Command) => {
    const { stack: _, ...place } = session.getManagedStack(command, [
      "stack",
      "region",
      "endpointUrl",
    ]);
    const { listStacks } = await import("@zae-limiter/infra");
    const stacks = await listStacks(place);
    const screen = session.screen(command);
    screen.show(stacks, () => listText(stacks, screen));
  });
}

function listText(stacks: readonly StackSummary[], { colours }: Screen): string {
  if (stacks.length === 0) return "No stacks. To deploy one: zae-limiter deploy\n";
  const rows = stacks.map(({ stack, status, version, createdAt }) => [
    stack,
    status,
    version,
    timeText(createdAt),
  ]);
  return `${tableText(["Name", "Status", "Version", "Created"], rows, colours)}${totals(stacks)}\n`;
}

/** The number of stacks, and of those that need attention. */
function totals(stacks: readonly StackSummary[]): string {
  const count = (pattern: RegExp): number =>
    stacks.filter(({ status }) => pattern.test(status)).length;
  const [failed, busy] = [count(/FAILED|ROLLBACK/), count(/^(?!.*ROLLBACK).*_IN_PROGRESS$/)];
  return [
    `${stacks.length} ${stacks.length === 1 ? "stack" : "stacks"}`,
    ...(busy > 0 ? [`${busy} in progress`] : []),
    ...(failed > 0 ? [`${failed} failed or rolled back`] : []),
  ].join(", ");
}
