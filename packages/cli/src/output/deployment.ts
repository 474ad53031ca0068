import type { AggregatorStatus, Seen, StackStatus, TableState } from "@zae-limiter/infra";
import type { Colours } from "./colours.ts";
import { fieldsText, type Cell } from "./table.ts";
import { ageText, numberText, printable, timeText } from "./text.ts";

/** The content of a section: fields, or sentences. */
type Content = readonly (readonly [string, Cell])[] | readonly string[];

/** The title of a section, and what it holds. */
type Section = readonly [title: string, content: Content];

/**
 * The sections about a stack and what belongs to it; undefined if neither a stack nor a table could
 * be read, because the reason is the same for all of them.
 */
export function deploymentSections(
  deployment: StackStatus,
  nowMs: number,
): readonly Section[] | undefined {
  const { table, infrastructure, problems, warnings, connectivity } = deployment;
  const isSeen = [table, infrastructure].some((part) => part !== undefined && !isUnknown(part));
  if (!isSeen && !connectivity.reachable) return undefined;
  const sections: readonly Section[] = [
    ["Infrastructure", infrastructureContent(deployment)],
    ["Table", toContent(table, "there is none", tableFields)],
    ["Aggregator", aggregatorFields(deployment.aggregator, nowMs)],
    ["Versions", versionsContent(deployment)],
    ["Functions", resourcesContent(deployment.functions)],
    ["Roles", resourcesContent(deployment.roles, deployment.policies)],
    ["Problems", problems],
    ["Warnings", warnings],
  ];
  return sections.filter(([, content]) => content.length > 0);
}

/** A section: its title, and its content below it, indented. */
export function sectionText(title: string, content: Content, colours: Colours): string {
  const text = content.every((line) => typeof line === "string")
    ? content.map((line) => `${printable(line)}\n`).join("")
    : fieldsText(content, colours);
  return `${colours.bold(title)}\n${text.replaceAll(/^/gm, "  ").trimEnd()}\n`;
}

function isUnknown<T>(part: Seen<T>): part is { readonly unknown: string } {
  return typeof part === "object" && part !== null && "unknown" in part;
}

/** A sentence for a part that is missing or unknown; otherwise its fields. */
function toContent<T>(part: Seen<T>, missing: string, fields: (part: T) => Content): Content {
  if (part === undefined) return [missing];
  return isUnknown(part) ? [`unknown: ${part.unknown}`] : fields(part);
}

function infrastructureContent({ stack, region, infrastructure }: StackStatus): Content {
  const missing = `no stack ${stack} in ${region}`;
  return toContent(infrastructure, missing, (state) => [
    ["Stack", `${stack}, ${state.status}`],
    ["Reason", state.reason],
    ["Created", timeText(state.createdAt)],
    ["Updated", timeText(state.updatedAt)],
    ["Deployed by", state.version === undefined ? undefined : `zae-limiter ${state.version}`],
  ]);
}

function tableFields(table: TableState): Content {
  const { itemCount, sizeBytes, indexes } = table;
  const states = [...new Set(Object.values(indexes))];
  const names = Object.keys(indexes).join(", ");
  return [
    ["Status", table.status],
    ["Items", itemCount],
    ["Size", sizeBytes === undefined ? undefined : `${numberText(sizeBytes)} bytes`],
    ["Billing", table.billing],
    ["Stream", table.streamArn ?? "off"],
    ["Expiry", partText(table.ttlAttribute, ({ name }) => `by ${name}`)],
    ["Recovery", partText(table.pointInTimeRecovery, recoveryText)],
    ["Deletion protection", table.deletionProtection ? "on" : "off"],
    [
      "Indexes",
      states.length === 1
        ? `${names}: ${states[0]}`
        : Object.entries(indexes)
            .map(([name, state]) => `${name} ${state}`)
            .join(", "),
    ],
  ];
}

function recoveryText({ days }: { readonly days?: number }): string {
  return days === undefined ? "on" : `${days} days back`;
}

/** One field of a part that may be off, or unknown. */
function partText<T>(part: Seen<T>, text: (part: T) => string, missing = "off"): string {
  if (part === undefined) return missing;
  return isUnknown(part) ? `unknown: ${part.unknown}` : text(part);
}

function aggregatorFields({ state, reason, heartbeat }: AggregatorStatus, nowMs: number): Content {
  return [
    ["State", `${state}: ${reason}`],
    [
      "Counted until",
      partText(
        heartbeat,
        ({ countedUntil }) =>
          `${timeText(countedUntil)}, ${ageText(nowMs - countedUntil.getTime())}`,
        "never; to start a runner: zae-limiter aggregate",
      ),
    ],
  ];
}

function versionsContent({ versions }: StackStatus): Content {
  return toContent(versions, "", ({ client, schema, lambda, minimumClient, meaning }) => [
    ["Client", client],
    ["Schema", schema],
    ["Lambda", lambda],
    ["Minimum client", minimumClient],
    ["Meaning", meaning],
  ]);
}

function resourcesContent(...parts: readonly StackStatus["roles"][]): Content {
  const unknown = parts.find(isUnknown);
  if (unknown !== undefined) return [`unknown: ${unknown.unknown}`];
  const named = parts.flatMap((part) => (isUnknown(part) ? [] : (part ?? [])));
  return named.length === 0
    ? ["the stack has made none"]
    : named.map(({ logicalId, physicalId }) => [logicalId, physicalId] as const);
}
