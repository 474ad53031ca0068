import type { Command } from "commander";
import { NamespaceNotFoundError, type NamespaceInfo } from "zae-limiter";
import type { Colours } from "../output/colours.ts";
import { fieldsText, tableText } from "../output/table.ts";
import { numberText, timeText } from "../output/text.ts";
import type { Session } from "./support/session.ts";
import { addNoun, addVerb, yesOption } from "./support/verb.ts";

/** Adds the verbs of `namespace`: tenants that share a repository and nothing else. */
export function addNamespaceCommands(program: Command, session: Session): void {
  const namespace = addNoun(
    program,
    "namespace",
    "Manages tenants that share a repository and nothing else.",
  );

  addVerb(namespace, {
    usage: "register <name...>",
    summary: "Registers namespaces. Those that exist stay as they are.",
    examples: ["namespace register tenant-alpha tenant-beta"],
  }).action(async (names: readonly string[], _options: object, command: Command) =>
    session.inRepository(command, "create", async ({ repository, screen }) => {
      const ids = await repository.registerNamespaces(names);
      screen.show(ids, () => tableText(["Namespace", "Id"], Object.entries(ids), screen.colours));
    }),
  );

  addVerb(namespace, {
    usage: "list",
    summary: "Lists the active namespaces.",
    examples: ["namespace list"],
  }).action(async (_options: object, command: Command) =>
    session.inRepository(command, "existing", async ({ repository, screen }) => {
      const namespaces = await repository.listNamespaces();
      screen.show(namespaces, () =>
        namespacesText(namespaces, "There are no namespaces.", screen.colours),
      );
    }),
  );

  addVerb(namespace, {
    usage: "show <name>",
    summary: "Shows one namespace.",
    examples: ["namespace show tenant-alpha"],
  }).action(async (name: string, _options: object, command: Command) =>
    session.inRepository(command, "existing", async ({ repository, screen }) => {
      const info = await repository.getNamespace(name);
      if (info === undefined) throw new NamespaceNotFoundError(name);
      screen.show(info, () => namespaceText(info, screen.colours));
    }),
  );

  addVerb(namespace, {
    usage: "delete <name>",
    summary:
      "Takes a namespace out of service. It keeps its data until purged, and can be recovered.",
    examples: ["namespace delete tenant-alpha --yes"],
  })
    .addOption(yesOption())
    .action(async (name: string, options: { readonly yes?: boolean }, command: Command) =>
      session.inRepository(command, "existing", async ({ repository, screen }) => {
        const info = await repository.getNamespace(name);
        if (info === undefined) throw new NamespaceNotFoundError(name);
        await session.confirm(`Delete namespace ${name}? Calls in it fail from then on.`, options);
        await repository.deleteNamespace(name);
        const undo = `To undo: zae-limiter namespace recover ${info.namespaceId}\n`;
        screen.show(
          { deleted: name, namespaceId: info.namespaceId },
          () => `Deleted namespace ${name}. ${undo}`,
        );
      }),
    );

  addVerb(namespace, {
    usage: "recover <id>",
    summary: "Puts a deleted namespace back into service. `namespace orphans` lists the ids.",
    examples: ["namespace recover ID"],
  }).action(async (namespaceId: string, _options: object, command: Command) =>
    session.inRepository(command, "existing", async ({ repository, screen }) => {
      const name = await repository.recoverNamespace(namespaceId).catch((error: unknown) => {
        throw error instanceof NamespaceNotFoundError ? buildUnknownIdError(namespaceId) : error;
      });
      const info = await repository.getNamespace(name);
      screen.show(info, () => `Recovered namespace ${name}.\n`);
    }),
  );

  addVerb(namespace, {
    usage: "orphans",
    summary: "Lists deleted and partly purged namespaces.",
    examples: ["namespace orphans"],
  }).action(async (_options: object, command: Command) =>
    session.inRepository(command, "existing", async ({ repository, screen }) => {
      const orphans = await repository.listOrphanNamespaces();
      screen.show(orphans, () =>
        namespacesText(orphans, "There are no deleted namespaces.", screen.colours),
      );
    }),
  );

  addVerb(namespace, {
    usage: "purge <id>",
    summary:
      "Permanently removes all data of a deleted namespace. To continue after an interruption, " +
      "or to remove what was written at the same time, run it again.",
    examples: ["namespace purge ID --yes"],
  })
    .addOption(yesOption())
    .action(async (namespaceId: string, options: { readonly yes?: boolean }, command: Command) =>
      session.inRepository(command, "existing", async ({ repository, screen }) => {
        const known = [
          ...(await repository.listOrphanNamespaces()),
          ...(await repository.listNamespaces()),
        ];
        const info = known.find((candidate) => candidate.namespaceId === namespaceId);
        // A namespace that was purged before may have got late writes: there is nothing to confirm.
        const name = info?.name ?? namespaceId;
        if (info !== undefined && info.status !== "active")
          await session.confirm(
            `Purge namespace ${name} (${namespaceId})? Its data cannot be recovered.`,
            options,
          );
        let deletedItems = 0;
        const onProgress = (count: number): void => {
          deletedItems = count;
          screen.progress(`Purging ${name}: ${numberText(count)} records`);
        };
        await repository.purgeNamespace(namespaceId, { onProgress });
        screen.endProgress();
        if (info === undefined && deletedItems === 0) throw buildUnknownIdError(namespaceId);
        screen.show(
          { purged: namespaceId, deletedItems },
          () => `Purged namespace ${name}: ${numberText(deletedItems)} records.\n`,
        );
      }),
    );
}

/** An id stands for a deleted namespace, so the usual hint to register a name would not help. */
function buildUnknownIdError(namespaceId: string): NamespaceNotFoundError {
  const error = new NamespaceNotFoundError(namespaceId);
  error.message =
    `No namespace has the id ${namespaceId}. ` +
    "To list the ids of deleted ones: zae-limiter namespace orphans";
  return error;
}

function namespaceText(
  { name, namespaceId, status, createdAt, deletedAt }: NamespaceInfo,
  colours: Colours,
): string {
  return fieldsText(
    [
      ["Namespace", name],
      ["Id", namespaceId],
      ["Status", status],
      ["Created", timeText(createdAt)],
      ["Deleted", timeText(deletedAt)],
    ],
    colours,
  );
}

function namespacesText(
  namespaces: readonly NamespaceInfo[],
  none: string,
  colours: Colours,
): string {
  if (namespaces.length === 0) return `${none}\n`;
  const rows = namespaces.map(({ name, namespaceId, status, createdAt, deletedAt }) => [
    name,
    namespaceId,
    status,
    timeText(createdAt),
    timeText(deletedAt),
  ]);
  return tableText(["Namespace", "Id", "Status", "Created", "Deleted"], rows, colours);
}
