import type { Command } from "commander";
import { Limit, type AuditEvent } from "zae-limiter";
import { UsageError } from "../exit.ts";
import { tableText } from "../output/table.ts";
import { timeText } from "../output/text.ts";
import { collectPages, moreText, type ListOptions } from "./support/pages.ts";
import type { Session } from "./support/session.ts";
import {
  addNoun,
  addVerb,
  cursorOption,
  chooseEntity,
  listLimitOption,
  takeEntity,
} from "./support/verb.ts";

/** Adds the verbs of `audit`: who changed what. */
export function addAuditCommands(program: Command, session: Session): void {
  const audit = addNoun(program, "audit", "Shows who changed what, and when.");

  takeEntity(
    addVerb(audit, {
      usage: "list",
      summary:
        "Lists the changes to an entity, to a resource's defaults, " +
        "or to the system level and the namespaces; newest first.",
      examples: [
        "audit list key-1 --limit 20",
        "audit list --resource gpt-4",
        "audit list --system",
      ],
    }),
    "The entity whose changes are listed.",
  )
    .option("-r, --resource <resource>", "The changes to the defaults of this resource.")
    .option("--system", "The changes to the system level and to namespaces.")
    .addOption(listLimitOption())
    .addOption(cursorOption())
    .action(
      async (
        named: string | undefined,
        options: SubjectOptions & ListOptions,
        command: Command,
      ) => {
        const subject = findSubject(chooseEntity(named, options), options);
        await session.inNamespace(command, "existing", async ({ repository, screen }) => {
          const page = await collectPages(options, (paging) =>
            repository.getAuditEvents(subject, paging),
          );
          const rows = page.items.map(eventCells);
          const table = (): string =>
            tableText(["Time", "Action", "Resource", "By", "Details"], rows, screen.colours) +
            moreText(page);
          screen.show(page, () =>
            page.items.length === 0 ? `No changes to ${subject} are recorded.\n` : table(),
          );
        });
      },
    );
}

interface SubjectOptions {
  readonly entityId?: string;
  readonly resource?: string;
  readonly system?: boolean;
}

/** The name under which the changes are recorded. */
function findSubject(entityId: string | undefined, { resource, system }: SubjectOptions): string {
  const subjects = [
    entityId,
    resource === undefined ? undefined : `$RESOURCE:${resource}`,
    system ? "$SYSTEM" : undefined,
  ];
  const named = subjects.filter((subject) => subject !== undefined);
  if (named.length !== 1)
    throw new UsageError("Pass exactly one of an entity, --resource and --system.");
  return named[0]!;
}

function eventCells({
  timestamp,
  action,
  resource,
  principal,
  details,
}: AuditEvent): readonly (string | undefined)[] {
  return [timeText(timestamp), action, resource, principal, detailsText(details)];
}

/** Details on one line: `name=key-1, cascade=true`, limits in their text form. */
function detailsText(details: AuditEvent["details"]): string {
  return (
    Object.entries(details)
      .filter(([, value]) => JSON.stringify(value) !== "{}")
      // Not every store keeps their order. This one shows before, then after; limits, then inherit.
      .sort(([left], [right]) => (left < right ? 1 : -1))
      .map(([name, value]) =>
        name === "limits" && Array.isArray(value)
          ? `limits=${value.map(limitText).join(" ")}`
          : `${name}=${plainText(value)}`,
      )
      .join(", ")
  );
}

/**
 * Another version may have recorded the event; text that is not a valid limit is shown unchanged.
 */
function limitText(value: unknown): string {
  try {
    return Limit.format(value as Limit);
  } catch {
    return plainText(value);
  }
}

function plainText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
