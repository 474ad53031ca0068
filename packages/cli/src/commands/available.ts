import { Argument, type Command } from "commander";
import { RateLimiter, type Amounts, type Availability, type LimitStatus } from "zae-limiter";
import type { Colours } from "../output/colours.ts";
import { tableText } from "../output/table.ts";
import { rateText, timeText, waitText } from "../output/text.ts";
import { amountArgument } from "./support/arguments.ts";
import type { Session } from "./support/session.ts";
import { addVerb } from "./support/verb.ts";

/** Adds `available`, which shows what a call would find without making it. */
export function addAvailableCommand(program: Command, session: Session): void {
  addVerb(program, {
    usage: "available <entity> <resource>",
    summary:
      "Shows how much of a resource is left to an entity, and to its parent if calls cascade; " +
      "with amounts, also whether a call would fit. Takes nothing.",
    examples: ["available key-1 gpt-4", "available key-1 gpt-4 rpm=1 tpm=500"],
  })
    .addArgument(
      new Argument("[amounts...]", "What a call would take, such as rpm=1 tpm=500.")
        .argParser(amountArgument)
        .default({}, "none"),
    )
    .action(
      async (
        entityId: string,
        resource: string,
        consume: Amounts,
        _options: object,
        command: Command,
      ) =>
        session.inNamespace(command, "existing", async ({ repository, screen }) => {
          const availability = await new RateLimiter({ repository }).check({
            entityId,
            resource,
            consume,
          });
          // Without amounts there is no call to judge, so the text does not say whether one fits.
          screen.show(availability, () =>
            Object.keys(consume).length === 0
              ? balancesTable(availability.statuses, screen.colours)
              : availabilityText(availability, screen.colours),
          );
        }),
    );
}

const HEADERS = ["Entity", "Limit", "Available", "Capacity", "Rate", "Set by"] as const;

function availabilityText(
  { allowed, retryAfterSeconds, statuses }: Availability,
  colours: Colours,
): string {
  const table = balancesTable(statuses, colours, ["Wanted", "Fits"], (status) => [
    status.requested,
    waitText(status.retryAfterSeconds),
  ]);
  return `${table}${verdictText(allowed, retryAfterSeconds, colours)}\n`;
}

/** The ends of open windows have a column if there are quotas or sessions. */
function balancesTable(
  statuses: readonly LimitStatus[],
  colours: Colours,
  moreHeaders: readonly string[] = [],
  toMore: (status: LimitStatus) => readonly (string | number)[] = () => [],
): string {
  const hasWindows = statuses.some(({ kind }) => kind !== "rate");
  return tableText(
    [...HEADERS, ...(hasWindows ? ["Window ends"] : []), ...moreHeaders],
    statuses.map((status) => [
      ...balanceCells(status),
      ...(hasWindows ? [timeText(status.resetsAt)] : []),
      ...toMore(status),
    ]),
    colours,
  );
}

function balanceCells({
  entityId,
  limitName,
  available,
  limit,
  source,
}: LimitStatus): readonly (string | number)[] {
  return [entityId, limitName, available, limit.capacity, rateText(limit), source];
}

function verdictText(allowed: boolean, retryAfterSeconds: number, colours: Colours): string {
  if (allowed) return colours.green("The call fits.");
  if (retryAfterSeconds === Infinity) return colours.red("The call can never fit.");
  return `${colours.red("The call does not fit now")}; it will in ${waitText(retryAfterSeconds)}.`;
}
