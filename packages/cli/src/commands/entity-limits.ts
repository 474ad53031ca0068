import { Option, type Command } from "commander";
import type { Limit } from "zae-limiter";
import { policyText } from "../output/limits.ts";
import { tableText } from "../output/table.ts";
import { chooseInherit, takeReplace, type ReplaceOptions } from "./support/replace.ts";
import { ALL_RESOURCES, policyInForce } from "./support/policy.ts";
import type { Session } from "./support/session.ts";
import { addVerb, collectLimits, takeLimits, yesOption } from "./support/verb.ts";

/** Adds the verbs of `entity` for limits that one entity has of its own. */
export function addEntityLimitCommands(entity: Command, session: Session): void {
  takeReplace(
    takeLimits(
      addVerb(entity, {
        usage: "set-limits <entity>",
        summary:
          "Sets an entity's own limits, for one resource or for all resources where it has none. " +
          "Limits of other names still come from the levels below.",
        examples: [
          "entity set-limits key-1 rpm:200 tpm:20000/min:30000",
          "entity set-limits key-1 --resource gpt-4 rpm:50 --replace --yes",
        ],
      }),
    ).addOption(resourceOption()),
  ).action(
    async (
      entityId: string,
      listed: readonly Limit[],
      options: LimitOptions & ReplaceOptions,
      command: Command,
    ) => {
      const { resource } = options;
      const limits = collectLimits(listed, options);
      await session.inNamespace(command, "create", async ({ repository, screen }) => {
        const scope = { entityId, resource };
        const inherit = await chooseInherit(session, options, { repository, limits, ...scope });
        await repository.setLimits(entityId, limits, { resource, inherit });
        const stored = await repository.getLimits(entityId, { resource });
        const policy = screen.json ? [] : await policyInForce(repository, scope);
        const done = `Set the limits of ${entityId} for ${scopeText(resource)}.\n`;
        const title = inForceText(entityId, resource);
        screen.show(stored, () => `${done}${title}:\n${policyText(policy, screen.colours)}`);
      });
    },
  );

  addVerb(entity, {
    usage: "get-limits <entity>",
    summary: "Shows an entity's own limits, and for people also those of other levels in force.",
    examples: ["entity get-limits key-1", "entity get-limits key-1 --resource gpt-4"],
  })
    .addOption(resourceOption())
    .action(async (entityId: string, { resource }: LimitOptions, command: Command) =>
      session.inNamespace(command, "existing", async ({ repository, screen }) => {
        const limits = await repository.getLimits(entityId, { resource });
        const policy = screen.json ? [] : await policyInForce(repository, { entityId, resource });
        const none = `${entityId} has no limits of its own for ${scopeText(resource)}`;
        screen.show(limits, () => {
          if (policy.length === 0) return `${none}, and no other level sets any.\n`;
          const own = limits.length === 0 ? `${none}.\n` : "";
          return `${own}${inForceText(entityId, resource)}:\n${policyText(policy, screen.colours)}`;
        });
      }),
    );

  addVerb(entity, {
    usage: "delete-limits <entity>",
    summary:
      "Deletes an entity's own limits. The defaults of the resource or the system apply again.",
    examples: ["entity delete-limits key-1 --resource gpt-4 --yes"],
  })
    .addOption(resourceOption())
    .addOption(yesOption())
    .action(async (id: string, { resource, yes = false }: LimitOptions, command: Command) =>
      session.inNamespace(command, "existing", async ({ repository, screen }) => {
        await session.confirm(`Delete the limits of ${id} for ${scopeText(resource)}?`, { yes });
        await repository.deleteLimits(id, { resource });
        screen.show(
          { deleted: id, resource },
          () => `Deleted the limits of ${id} for ${scopeText(resource)}.\n`,
        );
      }),
    );

  addVerb(entity, {
    usage: "list-resources",
    summary: "Lists the resources for which some entity has limits of its own.",
    examples: ["entity list-resources"],
  }).action(async (_options: object, command: Command) =>
    session.inNamespace(command, "existing", async ({ repository, screen }) => {
      const resources = await repository.listResourcesWithEntityConfigs();
      const none = "No entity has limits of its own.\n";
      screen.show(resources, () =>
        resources.length === 0
          ? none
          : tableText(
              ["Resource"],
              resources.map((name) => [name]),
              screen.colours,
            ),
      );
    }),
  );
}

interface LimitOptions {
  readonly resource: string;
  readonly limit?: readonly Limit[];
  readonly yes?: boolean;
}

function resourceOption(): Option {
  return new Option("-r, --resource <resource>", "The resource, or _default_ for all.").default(
    ALL_RESOURCES,
  );
}

function scopeText(resource: string): string {
  return resource === ALL_RESOURCES ? "all resources" : resource;
}

/** A heading. Limits for all resources apply where nothing more specific is set, and it says so. */
function inForceText(entityId: string, resource: string): string {
  const where = resource === ALL_RESOURCES ? "a resource without limits of its own" : resource;
  return `In force for ${entityId} on ${where}`;
}
