import { Option, type Command } from "commander";
import type { Limit, OnUnavailable, SystemDefaults } from "zae-limiter";
import type { Colours } from "../output/colours.ts";
import { limitsText } from "../output/limits.ts";
import { fieldsText } from "../output/table.ts";
import { countArgument } from "./support/arguments.ts";
import type { Session } from "./support/session.ts";
import { addNoun, addVerb, collectLimits, takeLimits, yesOption } from "./support/verb.ts";

/** Adds the verbs of `system`: what applies where nothing more specific is set. */
export function addSystemCommands(program: Command, session: Session): void {
  const system = addNoun(
    program,
    "system",
    "Manages the limits and settings that apply where nothing more specific is set.",
  );

  takeLimits(
    addVerb(system, {
      usage: "set-defaults",
      summary:
        "Sets the system's default limits. A setting that is left out keeps its stored value.",
      examples: ["system set-defaults rpm:100 tpm:10000/min:15000 --on-unavailable block"],
    }),
  )
    .addOption(
      new Option(
        "--on-unavailable <action>",
        "Whether to allow or block calls while the store is unavailable.",
      ).choices(["allow", "block"]),
    )
    .option("--replace", "Hide the defaults that programs have in code.")
    .option("--audit-retention-days <days>", "How long audit events are kept.", countArgument)
    .option("--usage-retention-days <days>", "How long usage is kept.", countArgument)
    .action(
      async (
        listed: readonly Limit[],
        {
          limit,
          replace = false,
          ...settings
        }: Settings & { readonly limit?: readonly Limit[]; readonly replace?: boolean },
        command: Command,
      ) => {
        const limits = collectLimits(listed, { limit });
        await session.inNamespace(command, "create", async ({ repository, screen }) => {
          await repository.setSystemDefaults(limits, { ...settings, inherit: !replace });
          const stored = await repository.getSystemDefaults();
          screen.show(
            stored,
            () => `Set the system defaults.\n${defaultsText(stored, screen.colours)}`,
          );
        });
      },
    );

  addVerb(system, {
    usage: "get-defaults",
    summary: "Shows the system's default limits and settings.",
    examples: ["system get-defaults"],
  }).action(async (_options: object, command: Command) =>
    session.inNamespace(command, "existing", async ({ repository, screen }) => {
      const stored = await repository.getSystemDefaults();
      screen.show(stored, () => defaultsText(stored, screen.colours));
    }),
  );

  addVerb(system, {
    usage: "delete-defaults",
    summary: "Deletes the system's default limits.",
    examples: ["system delete-defaults --yes"],
  })
    .addOption(yesOption())
    .action(async (options: { readonly yes?: boolean }, command: Command) =>
      session.inNamespace(command, "existing", async ({ repository, screen }) => {
        await session.confirm("Delete the system's default limits?", options);
        await repository.deleteSystemDefaults();
        screen.show({ deleted: "system" }, () => "Deleted the system defaults.\n");
      }),
    );
}

interface Settings {
  readonly onUnavailable?: OnUnavailable;
  readonly auditRetentionDays?: number;
  readonly usageRetentionDays?: number;
}

function defaultsText(
  { limits, onUnavailable, auditRetentionDays, usageRetentionDays }: SystemDefaults,
  colours: Colours,
): string {
  const settings = fieldsText(
    [
      ["On unavailable", onUnavailable ?? "block (default)"],
      ["Audit kept", `${auditRetentionDays} days`],
      ["Usage kept", `${usageRetentionDays} days`],
    ],
    colours,
  );
  return `${limitsText(limits, "The system has no default limits.", colours)}\n${settings}`;
}
