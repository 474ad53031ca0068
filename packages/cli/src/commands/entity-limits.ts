import { Option, type Command } from "commander";
import type { Limit } from "zae-limiter";
import { limitsText } from "../output/limits.ts";
import { tableText } from "../output/table.ts";
import type { Session } from "./support/session.ts";
import { addVerb, givenLimits, takeLimits, yesOption } from "./support/verb.ts";

/** Adds the verbs of `entity` for limits that one entity has of its own. */
export function addEntityLimitCommands(entity: Command, session: Session): void {
  takeLimits(
    addVerb(entity, {
      usage: "set-limits <entity>",
      summary:
        "Sets an entity's own limits, for one resource or for all resources where it has none.",
      examples: [
        "entity set-limits key-1 rpm:200 tpm:20000/min:30000",
        "entity set-limits key-1 --resource gpt-4 rpm:50",
      ],
    }),
  )
    .addOption(resourceOption())
    .action(
      async (id: string, listed: readonly Limit[], options: LimitOptions, command: Command) => {
        const { resource } = options;
        const limits = givenLimits(listed, options);
        await session.inNamespace(command, "create", async ({ repository, screen }) => {
          await repository.setLimits(id, limits, { resource });
          const stored = await repository.getLimits(id, { resource });
          const done = `Set the limits of ${id} for ${scopeText(resource)}.\n`;
          screen.show(stored, () => done + limitsText(stored, "", screen.colours));
        });
      },
    );

  addVerb(entity, {
    usage: "get-limits <entity>",
    summary: "Shows an entity's own limits.",
    examples: ["entity get-limits key-1", "entity get-limits key-1 --resource gpt-4"],
  })
    .addOption(resourceOption())
    .action(async (id: string, { resource }: LimitOptions, command: Command) =>
      session.inNamespace(command, "existing", async ({ repository, screen }) => {
        const limits = await repository.getLimits(id, { resource });
        screen.show(limits, () =>
          limitsText(
            limits,
            `${id} has no limits of its own for ${scopeText(resource)}.`,
            screen.colours,
          ),
        );
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

/** The resource under which limits for all resources are stored. */
const ALL_RESOURCES = "_default_";

function resourceOption(): Option {
  return new Option("-r, --resource <resource>", "The resource, or _default_ for all.").default(
    ALL_RESOURCES,
  );
}

function scopeText(resource: string): string {
  return resource === ALL_RESOURCES ? "all resources" : resource;
}
