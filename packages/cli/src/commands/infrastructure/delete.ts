import type { Command } from "commander";
import type { DeleteReport } from "@zae-limiter/infra";
import { InfrastructureNotFoundError } from "zae-limiter";
import { UsageError } from "../../exit.ts";
import type { Screen } from "../../output/screen.ts";
import { eventText } from "../../output/stack.ts";
import { fieldsText } from "../../output/table.ts";
import type { NamedStack } from "../support/repository-url.ts";
import type { Session } from "../support/session.ts";
import { addVerb, waitOption, yesOption } from "../support/verb.ts";
import { interruptible } from "./interruptible.ts";

/** Adds `delete`, which deletes a stack. */
export function addDeleteCommand(program: Command, session: Session): void {
  addVerb(program, {
    usage: "delete",
    summary:
      "Deletes a stack. Its table and its archive are kept, and a later deployment adopts the table.",
    examples: [
      "delete --stack my-stack --region eu-west-1",
      "delete --stack my-stack --with-data --yes",
    ],
  })
    .option("--with-data", "Delete the table too, with everything in it.")
    .option("--account <id>", "The account that is meant; any other one is refused.")
    .addOption(waitOption())
    .option("--no-wait", "Return as soon as the deletion has begun.")
    .addOption(yesOption())
    .action(async (options: Flags, command: Command) => {
      const { withData = false, wait = true, yes = false, account } = options;
      if (withData && !wait)
        throw new UsageError(
          "--with-data and --no-wait contradict each other: the table is deleted when the stack is gone. Leave one out.",
        );
      const place = session.getManagedStack(command);
      const screen = session.screen(command);
      await session.confirm(question(place.stack, withData), { yes });
      const rerun = `zae-limiter delete --stack ${place.stack}${withData ? " --with-data" : ""}`;
      const report = await interruptible(session, { stack: place.stack, rerun }, async (signal) => {
        const { deleteStack } = await import("@zae-limiter/infra");
        return deleteStack({
          ...place,
          withData,
          wait,
          signal,
          ...(account !== undefined && { account }),
          onEvent: (event) => void (screen.json || screen.notice(eventText(event))),
          onNotice: (text) => screen.notice(text),
        });
      });
      const left = report.outcome === "absent" && withData && (await deleteLeftTable(place));
      const shown = left ? { ...report, outcome: "deleted" as const } : report;
      screen.show(shown, () => reportText(shown, screen));
    });
}

interface Flags {
  readonly withData?: boolean;
  readonly account?: string;
  readonly wait?: boolean;
  readonly yes?: boolean;
}

function question(stack: string, withData: boolean): string {
  return withData
    ? `This deletes stack ${stack} and its table, with all limits, balances and usage of all namespaces. Go on?`
    : `This deletes stack ${stack}; its table is kept. Go on?`;
}

/** Deletes a table whose stack is gone: an earlier deletion kept it, or was interrupted. */
async function deleteLeftTable(place: NamedStack): Promise<boolean> {
  const { DynamoRepository } = await import("zae-limiter/dynamodb");
  try {
    const repository = await DynamoRepository.open(undefined, {
      ...place,
      create: false,
      lambda: "ignore",
    });
    try {
      await repository.deleteTable();
      return true;
    } finally {
      await repository.close();
    }
  } catch (error) {
    if (error instanceof InfrastructureNotFoundError) return false;
    throw error;
  }
}

function reportText({ stack, region, outcome, retained }: DeleteReport, screen: Screen): string {
  const fields = fieldsText(
    [
      ["Stack", stack],
      ["Region", region],
      ["Outcome", OUTCOMES[outcome]],
      ["Kept", retained.join(", ")],
    ],
    screen.colours,
  );
  return retained.includes(stack)
    ? `${fields}\nThe table is kept with everything in it. A deployment of stack ${stack} adopts it;\nto delete it: zae-limiter delete --stack ${stack} --with-data\n`
    : fields;
}

const OUTCOMES: Readonly<Record<DeleteReport["outcome"], string>> = {
  deleted: "deleted",
  started: "started: AWS goes on by itself",
  absent: "there is no such stack",
};
