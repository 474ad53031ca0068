import { Option, type Command } from "commander";
import { EntityNotFoundError, type Entity, type Page, type Repository } from "zae-limiter";
import type { Colours } from "../output/colours.ts";
import { fieldsText, tableText } from "../output/table.ts";
import { timeText } from "../output/text.ts";
import { metadataArgument } from "./support/arguments.ts";
import { nearest } from "./support/nearest.ts";
import { collectPages, moreText, type ListOptions } from "./support/pages.ts";
import type { Session } from "./support/session.ts";
import { addNoun, addVerb, cursorOption, listLimitOption, yesOption } from "./support/verb.ts";

/** Adds the verbs of `entity`: who is limited. */
export function addEntityCommands(program: Command, session: Session): Command {
  const entity = addNoun(program, "entity", "Manages who is limited: keys, users and projects.");

  addVerb(entity, {
    usage: "create <entity>",
    summary: "Creates an entity.",
    examples: [
      "entity create project-1 --name 'Project One'",
      "entity create key-1 --parent project-1 --cascade",
    ],
  })
    .option("--name <name>", "A name for people. By default, the id.")
    .addOption(new Option("--display-name <name>", "The same.").hideHelp().conflicts("name"))
    .option("--parent <entity>", "The entity to which it belongs.")
    .option("--cascade", "Calls by the entity also take from its parent.")
    .option("--no-cascade", "Calls by the entity take only from itself. This is the default.")
    .option(
      "--metadata <key=value>",
      "Metadata, such as team=search. Repeat it for more.",
      metadataArgument,
    )
    .action(async (id: string, options: CreateOptions, command: Command) =>
      session.inNamespace(command, "create", async ({ repository, screen }) => {
        const { displayName, name = displayName, parent, cascade = false, metadata } = options;
        const created = await repository.createEntity(id, {
          cascade,
          ...(name !== undefined && { name }),
          ...(parent !== undefined && { parentId: parent }),
          ...(metadata !== undefined && { metadata }),
        });
        screen.show(created, () => `Created entity ${created.id}.\n`);
      }),
    );

  addVerb(entity, {
    usage: "show <entity>",
    summary: "Shows one entity.",
    examples: ["entity show key-1"],
  }).action(async (id: string, _options: object, command: Command) =>
    session.inNamespace(command, "existing", async ({ repository, screen }) => {
      const found = await existingEntity(repository, id);
      screen.show(found, () => entityText(found, screen.colours));
    }),
  );

  addVerb(entity, {
    usage: "delete <entity>",
    summary:
      "Deletes an entity, its limits and its buckets. " +
      "Usage and audit stay until their retention ends.",
    examples: ["entity delete key-1 --yes"],
  })
    .addOption(yesOption())
    .action(async (id: string, options: { readonly yes?: boolean }, command: Command) =>
      session.inNamespace(command, "existing", async ({ repository, screen }) => {
        await session.confirm(`Delete entity ${id} with its limits and balances?`, options);
        await repository.deleteEntity(id).catch(async (error: unknown) => {
          if (!(error instanceof EntityNotFoundError)) throw error;
          throw await unknownEntity(repository, id, "so there is nothing to delete");
        });
        screen.show({ deleted: id }, () => `Deleted entity ${id}.\n`);
      }),
    );

  addVerb(entity, {
    usage: "children <entity>",
    summary: "Lists the children of an entity.",
    examples: ["entity children project-1"],
  }).action(async (id: string, _options: object, command: Command) =>
    session.inNamespace(command, "existing", async ({ repository, screen }) => {
      const children = await repository.getChildren(id);
      if (children.length === 0) await existingEntity(repository, id);
      screen.show(children, () =>
        children.length === 0
          ? `Entity ${id} has no children.\n`
          : entitiesText(children, screen.colours),
      );
    }),
  );

  addVerb(entity, {
    usage: "list",
    summary:
      "Lists entities; with --with-custom-limits, the ids of those " +
      "that have limits of their own for a resource.",
    examples: ["entity list --limit 20", "entity list --with-custom-limits gpt-4"],
  })
    .option(
      "--with-custom-limits <resource>",
      "Only entities with limits of their own for this resource.",
    )
    .addOption(listLimitOption())
    .addOption(cursorOption())
    .action(
      async (options: ListOptions & { readonly withCustomLimits?: string }, command: Command) =>
        session.inNamespace(command, "existing", async ({ repository, screen }) => {
          const { withCustomLimits: resource } = options;
          if (resource !== undefined) {
            const ids = await collectPages(options, (paging) =>
              repository.listEntitiesWithCustomLimits(resource, paging),
            );
            screen.show(ids, () =>
              idsText(ids, `No entity has limits of its own for ${resource}.\n`, screen.colours),
            );
            return;
          }
          const page = await collectPages(options, (paging) => repository.listEntities(paging));
          const none = "No entities yet. Create one: zae-limiter entity create key-1\n";
          screen.show(page, () =>
            page.items.length === 0
              ? none
              : entitiesText(page.items, screen.colours) + moreText(page),
          );
        }),
    );
  return entity;
}

function idsText(ids: Page<string>, none: string, colours: Colours): string {
  if (ids.items.length === 0) return none;
  const rows = ids.items.map((id) => [id]);
  return tableText(["Entity"], rows, colours) + moreText(ids);
}

interface CreateOptions {
  readonly name?: string;
  readonly displayName?: string;
  readonly parent?: string;
  readonly cascade?: boolean;
  readonly metadata?: Readonly<Record<string, string>>;
}

/** The most ids among which a similar one is looked for: one page. */
const MAX_CANDIDATES = 1000;

async function existingEntity(repository: Repository, id: string): Promise<Entity> {
  const found = await repository.getEntity(id);
  if (found !== undefined) return found;
  throw await unknownEntity(repository, id);
}

/** The error for an id that nothing is known of. It names the id that was probably meant. */
async function unknownEntity(
  repository: Repository,
  id: string,
  consequence?: string,
): Promise<EntityNotFoundError> {
  const error = new EntityNotFoundError(id);
  if (consequence !== undefined) error.message = `Entity ${id} does not exist, ${consequence}.`;
  const { items } = await repository.listEntities({ limit: MAX_CANDIDATES });
  const similar = nearest(
    id,
    items.map((entity) => entity.id),
  );
  if (similar !== undefined) error.message += ` Did you mean ${similar}?`;
  return error;
}

function entityText(
  { id, name, parentId, cascade, metadata, createdAt }: Entity,
  colours: Colours,
): string {
  const notes = Object.entries(metadata).map(([key, value]) => `${key}=${value}`);
  return fieldsText(
    [
      ["Entity", id],
      ["Name", name],
      ["Parent", parentId],
      ["Cascade", cascade],
      ["Metadata", notes.join(", ")],
      ["Created", timeText(createdAt)],
    ],
    colours,
  );
}

function entitiesText(entities: readonly Entity[], colours: Colours): string {
  const rows = entities.map(({ id, name, parentId, cascade, createdAt }) => [
    id,
    name,
    parentId,
    cascade,
    timeText(createdAt),
  ]);
  return tableText(["Entity", "Name", "Parent", "Cascade", "Created"], rows, colours);
}
