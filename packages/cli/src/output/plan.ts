import type {
  LimitsPlan,
  ManifestProblem,
  PlanAction,
  PlanEntry,
  ValueChange,
} from "zae-limiter/manifest";
import type { Colours } from "./colours.ts";
import { tableText } from "./table.ts";
import { numberText, printable, timeText } from "./text.ts";

/** A plan, and whether its namespace exists. */
export interface ShownPlan {
  readonly plan: LimitsPlan;
  readonly isRegistered: boolean;
}

/**
 * How many entries a plan has of each kind; `drift` counts those that were changed by hand, and
 * `adopt` the stored levels that no manifest has declared before.
 */
type PlanCounts = Readonly<Record<PlanAction | "drift" | "adopt", number>>;

/** Counts the entries of a plan. */
function countEntries(entries: readonly PlanEntry[]): PlanCounts {
  const counts = { create: 0, update: 0, delete: 0, unchanged: 0, drift: 0, adopt: 0 };
  for (const entry of entries) {
    counts[entry.action] += 1;
    if (entry.drift) counts.drift += 1;
    if (isAdopted(entry)) counts.adopt += 1;
  }
  return counts;
}

/**
 * Whether an apply takes over what others have stored: from then on, an apply deletes them once
 * they leave the manifest. Records are never deleted.
 */
function isAdopted({ action, level, managed }: PlanEntry): boolean {
  return !managed && level !== "record" && (action === "update" || action === "unchanged");
}

/** The note on what an apply has taken over; empty if nothing. */
export function formatAdopted({ plan: { entries } }: ShownPlan): string {
  const { adopt } = countEntries(entries);
  if (adopt === 0) return "";
  return `Took over ${numberText(adopt)} level${adopt === 1 ? "" : "s"} that no manifest had declared.\n`;
}

/** The differences, in the order of the plan. */
export function listChanges(entries: readonly PlanEntry[]): readonly PlanEntry[] {
  return entries.filter(({ action }) => action !== "unchanged");
}

/** A plan for programs: as it is declared, without the content of an apply that has not ended. */
export function planModel({ plan, isRegistered }: ShownPlan): object {
  const { pending, ...rest } = plan;
  const { declared: _, ...begun } = pending ?? {};
  return {
    ...rest,
    ...(pending !== undefined && { pending: begun }),
    registered: isRegistered,
    counts: countEntries(plan.entries),
  };
}

/** A plan for people, level by level: at most `most` of them, and then losses come first. */
export function planText(shown: ShownPlan, colours: Colours, most = Infinity): string {
  const changes = listChanges(shown.plan.entries);
  const listed =
    changes.length <= most
      ? changes
      : changes.toSorted((left, right) => RANKS[left.action] - RANKS[right.action]).slice(0, most);
  const rest = changes.length - listed.length;
  const more = rest === 0 ? "" : `… and ${numberText(rest)} more; limits plan shows all of them.\n`;
  const entries = listed.map((entry) => entryText(entry, colours)).join("");
  const gap = changes.length === 0 ? "" : "\n";
  return `${notesText(shown)}${entries}${more}${gap}${summaryText(shown)}`;
}

/** A plan for people, value by value. */
export function diffText(shown: ShownPlan, colours: Colours): string {
  const rows = listChanges(shown.plan.entries).flatMap((entry) =>
    entry.values.map(({ name, before, after, drift }) => [
      placeText(entry),
      name,
      before === undefined ? "" : quoteIfEmpty(before),
      after === undefined ? "" : quoteIfEmpty(after),
      drift ? "drift" : "",
    ]),
  );
  const table =
    rows.length === 0
      ? ""
      : `${tableText(["Where", "Value", "Stored", "Declared", ""], rows, colours)}\n`;
  const isDrift = rows.some((row) => row.at(-1) !== "");
  const legend = isDrift ? "drift: changed by hand since the last apply.\n" : "";
  return `${notesText(shown)}${table}${legend}${summaryText(shown)}`;
}

/** The most changes that are listed below an error. */
const MOST_LEFT = 20;

/** The changes that an apply has not made, one line each. */
export function formatRemaining(left: readonly PlanEntry[], colours: Colours): string {
  const lines = left.slice(0, MOST_LEFT).map((entry) => `  ${titleText(entry, colours)}\n`);
  const rest = left.length - lines.length;
  const more = rest === 0 ? "" : `  … and ${numberText(rest)} more\n`;
  return `Not changed yet:\n${lines.join("")}${more}`;
}

/** The problems of a manifest, one line each, in the format of compilers. */
export function problemsText(problems: readonly ManifestProblem[]): string {
  return problems.map((problem) => `${printable(problemText(problem))}\n`).join("");
}

function problemText({ file, line, column, message, suggestion }: ManifestProblem): string {
  const place = [file, line, column].filter((part) => part !== undefined).join(":");
  return `${place}: ${[message, suggestion].filter(Boolean).join(" ")}`;
}

function notesText({ plan: { namespace, pending, owner }, isRegistered }: ShownPlan): string {
  const notes: string[] = [];
  if (!isRegistered)
    notes.push(`Namespace ${namespace} is not registered; limits apply will register it.\n`);
  if (pending !== undefined) {
    const by = pending.principal === undefined ? "" : ` by ${printable(pending.principal)}`;
    notes.push(
      `An apply that began at ${timeText(pending.startedAt)}${by} has not ended: ` +
        "it is still running, or it was interrupted.\n",
    );
  }
  if (owner !== undefined)
    notes.push(
      `CloudFormation applied the limits of ${namespace} (${printable(owner)}). ` +
        "limits apply takes them over.\n",
    );
  return notes.length === 0 ? "" : `${notes.join("")}\n`;
}

function summaryText({ plan: { namespace, entries } }: ShownPlan): string {
  const counts = countEntries(entries);
  const unchanged = `${numberText(counts.unchanged)} unchanged.\n${adoptionText(counts)}`;
  if (listChanges(entries).length === 0) return `Nothing to change in ${namespace}: ${unchanged}`;
  const changes = (["create", "update", "delete"] as const)
    .map((action) => `${numberText(counts[action])} to ${action}`)
    .join(", ");
  return `Plan for ${namespace}: ${changes}, ${unchanged}`;
}

function adoptionText({ adopt }: PlanCounts): string {
  if (adopt === 0) return "";
  const them = adopt === 1 ? "it" : "them";
  return (
    `No manifest has declared ${numberText(adopt)} of these levels so far; ` +
    `limits apply takes ${them} over.\n`
  );
}

const SIGNS: Readonly<Record<PlanAction, string>> = {
  create: "+",
  update: "~",
  delete: "-",
  unchanged: " ",
};

/** Losses are shown first. */
const RANKS: Readonly<Record<PlanAction, number>> = {
  delete: 0,
  update: 1,
  create: 2,
  unchanged: 3,
};

function entryText(entry: PlanEntry, colours: Colours): string {
  const width = Math.max(0, ...entry.values.map(({ name }) => name.length));
  const lines = entry.values.map((value) => `    ${valueText(value, width, colours)}\n`);
  return `${titleText(entry, colours)}\n${lines.join("")}`;
}

function titleText(entry: PlanEntry, colours: Colours): string {
  const { action } = entry;
  return `${chooseColour(action, colours)(`${SIGNS[action]} ${action}`)} ${placeText(entry)}`;
}

function valueText({ name, before, after }: ValueChange, width: number, colours: Colours): string {
  const action = before === undefined ? "create" : after === undefined ? "delete" : "update";
  const values = [before, after].filter((value) => value !== undefined).map(quoteIfEmpty);
  const sign = chooseColour(action, colours)(SIGNS[action]);
  return `${sign} ${printable(name).padEnd(width)}  ${values.join(" → ")}`;
}

function quoteIfEmpty(value: string): string {
  return value === "" ? '""' : printable(value);
}

function chooseColour(action: PlanAction, colours: Colours): Colours["bold"] {
  if (action === "create") return colours.green;
  return action === "delete" ? colours.red : colours.bold;
}

/** The subject of an entry. A record is the entity itself. */
function placeText({ level, entityId = "", resource = "" }: PlanEntry): string {
  if (level === "system") return "system";
  if (level === "resource") return `resource ${printable(resource)}`;
  const entity = `entity ${printable(entityId)}`;
  if (level === "record") return entity;
  return `${entity} for ${resource === "_default_" ? "all resources" : printable(resource)}`;
}
