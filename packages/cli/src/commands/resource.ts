import type { Command } from "commander";
import type { Limit } from "zae-limiter";
import { limitsText, policyText } from "../output/limits.ts";
import { tableText } from "../output/table.ts";
import { chooseInherit, takeReplace, type ReplaceOptions } from "./support/replace.ts";
import { policyInForce } from "./support/policy.ts";
import type { Session } from "./support/session.ts";
import { addNoun, addVerb, collectLimits, takeLimits, yesOption } from "./support/verb.ts";

/** Adds the verbs of `resource`: what is limited, and its defaults. */
export function addResourceCommands(program: Command, session: Session): void {
  const resource = addNoun(
    program,
    "resource",
    "Manages what is limited, such as models and endpoints, and its default limits.",
  );

  takeReplace(
    takeLimits(
      addVerb(resource, {
        usage: "set-defaults <resource>",
        summary:
          "Sets the default limits of a resource, for entities that have none of their own. " +
          "Limits of other names still come from the system.",
        examples: [
          "resource set-defaults gpt-4 rpm:60 tpm:6000/min:9000",
          "resource set-defaults gpt-4 rpm:60 --replace --yes",
        ],
      }),
    ),
  ).action(
    async (
      name: string,
      listed: readonly Limit[],
      options: ReplaceOptions & { readonly limit?: readonly Limit[] },
      command: Command,
    ) => {
      const limits = collectLimits(listed, options);
      await session.inNamespace(command, "create", async ({ repository, screen }) => {
        const scope = { resource: name };
        const inherit = await chooseInherit(session, options, { repository, limits, ...scope });
        await repository.setResourceDefaults(name, limits, { inherit });
        const stored = await repository.getResourceDefaults(name);
        const policy = screen.json ? [] : await policyInForce(repository, scope);
        const done = `Set the defaults of ${name}.\nIn force for an entity without limits of its own:\n`;
        screen.show(stored, () => done + policyText(policy, screen.colours));
      });
    },
  );

  addVerb(resource, {
    usage: "get-defaults <resource>",
    summary: "Shows the default limits of a resource.",
    examples: ["resource get-defaults gpt-4"],
  }).action(async (name: string, _options: object, command: Command) =>
    session.inNamespace(command, "existing", async ({ repository, screen }) => {
      const limits = await repository.getResourceDefaults(name);
      screen.show(limits, () => limitsText(limits, `${name} has no defaults.`, screen.colours));
    }),
  );

  addVerb(resource, {
    usage: "delete-defaults <resource>",
    summary: "Deletes the default limits of a resource. The system's defaults apply again.",
    examples: ["resource delete-defaults gpt-4 --yes"],
  })
    .addOption(yesOption())
    .action(async (name: string, options: { readonly yes?: boolean }, command: Command) =>
      session.inNamespace(command, "existing", async ({ repository, screen }) => {
        await session.confirm(`Delete the default limits of ${name}?`, options);
        await repository.deleteResourceDefaults(name);
        screen.show({ deleted: name }, () => `Deleted the defaults of ${name}.\n`);
      }),
    );

  addVerb(resource, {
    usage: "list",
    summary: "Lists the resources that have defaults.",
    examples: ["resource list"],
  }).action(async (_options: object, command: Command) =>
    session.inNamespace(command, "existing", async ({ repository, screen }) => {
      const names = await repository.listResourcesWithDefaults();
      const none = "No resource has defaults.\n";
      screen.show(names, () =>
        names.length === 0
          ? none
          : tableText(
              ["Resource"],
              names.map((name) => [name]),
              screen.colours,
            ),
      );
    }),
  );
}
