import type { Command } from "commander";
import { RateLimiter, type Amounts, type Availability } from "zae-limiter";
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
    .argument("[amounts...]", "what a call would take, such as rpm=1 tpm=500", amountArgument, {})
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
          screen.show(availability, () => availabilityText(availability, screen.colours));
        }),
    );
}

const HEADERS = [
  "Entity",
  "Limit",
  "Available",
  "Capacity",
  "Rate",
  "Set by",
  "Wanted",
  "Fits",
] as const;

function availabilityText(
  { allowed, retryAfterSeconds, statuses }: Availability,
  colours: Colours,
): string {
  const rows = statuses.map((status) => [
    status.entityId,
    status.limitName,
    status.available,
    status.limit.capacity,
    rateText(status.limit),
    status.source,
    status.requested,
    waitText(status.retryAfterSeconds),
  ]);
  const verdict = verdictText(allowed, retryAfterSeconds, colours);
  return `${tableText(HEADERS, rows, colours)}${verdict}\n`;
}

function verdictText(allowed: boolean, retryAfterSeconds: number, colours: Colours): string {
  if (allowed) return colours.green("The call fits.");
  if (retryAfterSeconds === Infinity) return colours.red("The call can never fit.");
  return `${colours.red("The call does not fit now")}; it will in ${waitText(retryAfterSeconds)}.`;
}
