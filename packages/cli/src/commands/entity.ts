import { Option, type Command } from "commander";
import {
  EntityNotFoundError,
  type DeletedEntity,
  type Entity,
  type Page,
  type Repository,
} from "zae-limiter";
import { UsageError } from "../exit.ts";
import type { Colours } from "../output/colours.ts";
import { entitiesText, entityText } from "../output/entities.ts";
import { tableText } from "../output/table.ts";
import { numberText, timeText } from "../output/text.ts";
import { metadataArgument } from "./support/arguments.ts";
import { nearest } from "./support/nearest.ts";
import { collectPages, moreText, type ListOptions } from "./support/pages.ts";
import { ALL_RESOURCES } from "./support/policy.ts";
import type { Session } from "./support/session.ts";
import { addNoun, addVerb, cursorOption, listLimitOption, yesOption } from "./support/verb.ts";

/** Adds the verbs of `entity`: who is limited. */
export function addEntityCommands(program: Command, session: Session): Command {
  const entity = addNoun(program, "entity", "Manages who is limited: keys, users and projects.");

  takeDescription(
    addVerb(entity, {
      usage: "create <entity>",
      summary: "Creates an entity.",
      examples: [
        "entity create project-1 --name 'Project One'",
        "entity create key-1 --parent project-1 --cascade",
      ],
    }),
  )
    .option("--parent <entity>", "The entity to which it belongs.")
    .action(async (id: string, options: DescriptionOptions, command: Command) =>
      session.inNamespace(command, "create", async ({ repository, screen }) => {
        const created = await repository.createEntity(id, toDescription(options));
        const note = screen.json ? "" : await parentNote(repository, created);
        screen.show(created, () => `Created entity ${created.id}.\n${note}`);
      }),
    );

  takeDescription(
    addVerb(entity, {
      usage: "ensure <entity>",
      summary: "Creates an entity unless it exists. One that exists stays as it is.",
      examples: ["entity ensure key-1 --parent project-1 --cascade"],
    }),
  )
    .option("--parent <entity>", "The entity to which it belongs.")
    .action(async (id: string, options: DescriptionOptions, command: Command) =>
      session.inNamespace(command, "create", async ({ repository, screen }) => {
        const before = await repository.getEntity(id);
        const ensured = await repository.ensureEntity(id, toDescription(options));
        const isNew = before === undefined;
        const note = isNew && !screen.json ? await parentNote(repository, ensured) : "";
        screen.show(ensured, () =>
          isNew
            ? `Created entity ${id}.\n${note}`
            : `Entity ${id} exists already, and stays as it is:\n${entityText(ensured, screen.colours)}`,
        );
      }),
    );

  takeDescription(
    addVerb(entity, {
      usage: "update <entity>",
      summary:
        "Changes the name, the metadata or the cascade of an entity. What is left out stays as it " +
        "is; metadata is replaced as a whole.",
      examples: ["entity update key-1 --name 'Key of Ada'", "entity update key-1 --no-cascade"],
    }),
  ).action(async (id: string, options: DescriptionOptions, command: Command) => {
    const change = toDescription(options);
    if (Object.keys(change).length === 0)
      throw new UsageError("Pass at least one of --name, --metadata, --cascade and --no-cascade.");
    await session.inNamespace(command, "existing", async ({ repository, screen }) => {
      const updated = await orSuggestion(repository, id, repository.updateEntity(id, change));
      const cascades = change.cascade === true && !screen.json;
      const note = cascades ? await parentNote(repository, updated) : "";
      const done = `Updated entity ${id}:\n${entityText(updated, screen.colours)}`;
      screen.show(updated, () => done + note);
    });
  });

  addVerb(entity, {
    usage: "show <entity>",
    summary: "Shows one entity.",
    examples: ["entity show key-1"],
  }).action(async (id: string, _options: object, command: Command) =>
    session.inNamespace(command, "existing", async ({ repository, screen }) => {
      const found = await getExistingEntity(repository, id);
      screen.show(found, () => entityText(found, screen.colours));
    }),
  );

  addVerb(entity, {
    usage: "delete <entity>",
    summary:
      "Deletes an entity, its limits and its buckets. Usage and audit stay until their retention " +
      "ends, or are removed too with --with-history; run that again if it was interrupted.",
    examples: ["entity delete key-1 --yes", "entity delete key-1 --with-history --yes"],
  })
    .option("--with-history", "Remove its usage and its audit events too.")
    .addOption(yesOption())
    .action(async (id: string, options: DeleteFlags, command: Command) =>
      session.inNamespace(command, "existing", async ({ repository, screen }) => {
        const { withHistory: history = false } = options;
        const belongings = history
          ? "limits, balances, usage and audit events"
          : "limits and balances";
        await session.confirm(`Delete entity ${id} with its ${belongings}?`, options);
        const onProgress = (count: number): void =>
          screen.progress(`Deleting ${id}: ${numberText(count)} records`);
        const work = repository
          .deleteEntity(id, { history, onProgress })
          .finally(() => screen.endProgress());
        const deleted = await orSuggestion(repository, id, work.then(assertAny(id)));
        const shown = { deleted: id, ...(history && deleted) };
        screen.show(shown, () => (history ? erasedText(id, deleted) : `Deleted entity ${id}.\n`));
      }),
    );

  addVerb(entity, {
    usage: "children <entity>",
    summary: "Lists the children of an entity.",
    examples: ["entity children project-1"],
  }).action(async (id: string, _options: object, command: Command) =>
    session.inNamespace(command, "existing", async ({ repository, screen }) => {
      const children = await repository.getChildren(id);
      if (children.length === 0) await getExistingEntity(repository, id);
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

interface DeleteFlags {
  readonly withHistory?: boolean;
  readonly yes?: boolean;
}

/** An erasure of nothing succeeds, so that it can be repeated, but here it may be a wrong id. */
function assertAny(id: string): (deleted: DeletedEntity) => DeletedEntity {
  return (deleted) => {
    const { records, usageRecords, auditEvents } = deleted;
    if (records + usageRecords + auditEvents === 0) throw new EntityNotFoundError(id);
    return deleted;
  };
}

function erasedText(id: string, deleted: DeletedEntity): string {
  const { records, usageRecords, auditEvents, archivedUnder, usageMayFollowUntil } = deleted;
  const counts = [records, usageRecords, auditEvents].map(numberText);
  const text = `Deleted entity ${id}: ${counts[0]} records, ${counts[1]} of usage, ${counts[2]} audit events.\n`;
  const left =
    usageMayFollowUntil === undefined
      ? ""
      : `If an aggregator runs, it may still count usage until ${timeText(usageMayFollowUntil)}. ` +
        "Run this again when zae-limiter status shows a later time.\n";
  return archivedUnder === undefined
    ? text + left
    : `${text}${left}If an aggregator has an archive, older audit events remain there, under ${archivedUnder}\n`;
}

function idsText(ids: Page<string>, none: string, colours: Colours): string {
  if (ids.items.length === 0) return none;
  const rows = ids.items.map((id) => [id]);
  return tableText(["Entity"], rows, colours) + moreText(ids);
}

interface DescriptionOptions {
  readonly name?: string;
  readonly displayName?: string;
  readonly parent?: string;
  readonly cascade?: boolean;
  readonly metadata?: Readonly<Record<string, string>>;
}

type Description = NonNullable<Parameters<Repository["createEntity"]>[1]>;

/** The options that describe an entity. `--display-name` is another spelling of `--name`. */
function takeDescription(command: Command): Command {
  return command
    .option("--name <name>", "A name for people, instead of the id.")
    .addOption(new Option("--display-name <name>", "The same.").hideHelp().conflicts("name"))
    .option("--cascade", "Calls by the entity also take from its parent.")
    .option("--no-cascade", "Calls by the entity take only from itself.")
    .option(
      "--metadata <key=value>",
      "Metadata, such as team=search. Repeat it for more.",
      metadataArgument,
    );
}

/** The options of the library for an entity. */
function toDescription({
  displayName,
  name = displayName,
  parent,
  cascade,
  metadata,
}: DescriptionOptions): Description {
  return {
    ...(name !== undefined && { name }),
    ...(parent !== undefined && { parentId: parent }),
    ...(cascade !== undefined && { cascade }),
    ...(metadata !== undefined && { metadata }),
  };
}

/**
 * Defaults are meant for one entity each. A parent without limits of its own has them too, and all
 * calls that cascade into it share them; that is surprising, so the command that causes it says so.
 */
async function parentNote(repository: Repository, { parentId, cascade }: Entity): Promise<string> {
  if (parentId === undefined || !cascade || (await hasOwnLimits(repository, parentId))) return "";
  const { limits } = await repository.getSystemDefaults();
  const isLimited = limits.length > 0 || (await repository.listResourcesWithDefaults()).length > 0;
  if (!isLimited) return "";
  return (
    `Note: ${parentId} has no limits of its own. The defaults apply to it as to one key, and all ` +
    "its keys together share that allowance. To give it its own: " +
    `zae-limiter entity set-limits ${parentId} rpm:1000\n`
  );
}

async function hasOwnLimits(repository: Repository, entityId: string): Promise<boolean> {
  const resources = [ALL_RESOURCES, ...(await repository.listResourcesWithEntityConfigs())];
  for (const resource of resources)
    if ((await repository.getLimits(entityId, { resource })).length > 0) return true;
  return false;
}

/** The most ids to search for a similar one: one page. */
const MAX_CANDIDATES = 1000;

async function getExistingEntity(repository: Repository, id: string): Promise<Entity> {
  return orSuggestion(
    repository,
    id,
    repository.getEntity(id).then((found) => {
      if (found === undefined) throw new EntityNotFoundError(id);
      return found;
    }),
  );
}

/** Runs some work; if the entity does not exist, the error suggests a similar id. */
async function orSuggestion<T>(repository: Repository, id: string, work: Promise<T>): Promise<T> {
  return work.catch(async (error: unknown) => {
    if (!(error instanceof EntityNotFoundError) || error.entityId !== id) throw error;
    const { items } = await repository.listEntities({ limit: MAX_CANDIDATES });
    const similar = nearest(
      id,
      items.map((entity) => entity.id),
    );
    const advice =
      similar === undefined
        ? "To list entities: zae-limiter entity list"
        : `Did you mean ${similar}?`;
    error.message = `Entity ${id} does not exist. ${advice}`;
    throw error;
  });
}
