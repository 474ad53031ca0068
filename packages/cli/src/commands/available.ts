import { Argument, type Command } from "commander";
import { RateLimiter, type Amounts, type Availability, type LimitStatus } from "zae-limiter";
import type { Colours } from "../output/colours.ts";
import { tableText } from "../output/table.ts";
import { rateText, waitText } from "../output/text.ts";
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
          screen.show(availability, () =>
            Object.keys(consume).length === 0
              ? balancesText(availability, screen.colours)
              : availabilityText(availability, screen.colours),
          );
        }),
    );
}

const HEADERS = ["Entity", "Limit", "Available", "Capacity", "Rate", "Set by"] as const;

/** Without amounts there is no call to judge, so the text does not say whether one fits. */
function balancesText({ statuses }: Availability, colours: Colours): string {
  return tableText(HEADERS, statuses.map(balanceCells), colours);
}

function availabilityText(
  { allowed, retryAfterSeconds, statuses }: Availability,
  colours: Colours,
): string {
  const rows = statuses.map((status) => [
    ...balanceCells(status),
    status.requested,
    waitText(status.retryAfterSeconds),
  ]);
  const verdict = verdictText(allowed, retryAfterSeconds, colours);
  return `${tableText([...HEADERS, "Wanted", "Fits"], rows, colours)}${verdict}\n`;
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
