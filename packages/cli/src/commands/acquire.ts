import { Option, type Command } from "commander";
import { RateLimiter, type Amounts, type OnUnavailable, type RateLimitExceeded } from "zae-limiter";
import { EXIT } from "../exit.ts";
import type { Colours } from "../output/colours.ts";
import { amountsText, waitText } from "../output/text.ts";
import { amountArgument, durationMsArgument } from "./support/arguments.ts";
import type { Session } from "./support/session.ts";
import { addVerb } from "./support/verb.ts";

/** Adds `acquire`, which takes tokens once, for scripts. */
export function addAcquireCommand(program: Command, session: Session): void {
  addVerb(program, {
    usage: "acquire <entity> <resource>",
    summary:
      "Takes tokens once and keeps them. Exits 0 when granted; " +
      "exits 3 and shows how long to wait when refused.",
    examples: [
      "acquire key-1 gpt-4 rpm=1 tpm=500",
      "acquire nightly-job api rpm=1 --wait 30 && ./job.sh",
      "acquire key-1 gpt-4 rpm=1 tpm=500 --priority batch --leave tpm=2000",
    ],
  })
    .argument("<amounts...>", "What to take, such as rpm=1 tpm=500.", amountArgument)
    .option("--wait <seconds>", "Wait up to this long for the call to fit.", durationMsArgument)
    .option("--priority <class>", "Leave what the limits reserve from calls of this class.")
    .option(
      "--leave <amount>",
      "Leave at least so much for others, such as tpm=2000; may be repeated.",
      amountArgument,
    )
    .addOption(
      new Option(
        "--on-unavailable <action>",
        "Whether to allow or block the call while the store is unavailable.",
      ).choices(["allow", "block"]),
    )
    .action(
      async (
        entityId: string,
        resource: string,
        consume: Amounts,
        { wait: waitUpToMs, onUnavailable, priority, leave }: AcquireOptions,
        command: Command,
      ) =>
        session.inNamespace(command, "existing", async ({ repository, screen }) => {
          const result = await new RateLimiter({ repository }).tryAcquire({
            entityId,
            resource,
            consume,
            ...(waitUpToMs !== undefined && { waitUpToMs }),
            ...(onUnavailable !== undefined && { onUnavailable }),
            ...(priority !== undefined && { priority }),
            ...(leave !== undefined && { leave }),
          });
          if (!result.granted) {
            screen.show(result.refusal, () => refusalText(result.refusal, screen.colours));
            return EXIT.refused;
          }
          const { consumed, degraded } = result.lease;
          await result.lease.commit();
          const how = degraded ? " without the store (nothing was charged)" : "";
          screen.show(
            { granted: true, entityId, resource, consumed, degraded },
            () => `${screen.colours.green("Granted")}${how}: ${amountsText(consumed)}\n`,
          );
          return EXIT.done;
        }),
    );
}

interface AcquireOptions {
  /** In milliseconds; the option is in seconds. */
  readonly wait?: number;
  readonly onUnavailable?: OnUnavailable;
  readonly priority?: string;
  readonly leave?: Amounts;
}

function refusalText({ message, retryAfterSeconds }: RateLimitExceeded, colours: Colours): string {
  return `${colours.red("Refused")}: ${message}\nWait: ${waitText(retryAfterSeconds)}\n`;
}
