// Prints the comment on a pull request: what `limits plan --json` wrote to standard output, or
// what it wrote to standard error if the manifest cannot be planned.
// Usage: node ci/plan-comment.mjs plan.json error.json > comment.md
import { readFileSync } from "node:fs";

/** GitHub takes comments of up to 65 536 characters. */
const LONGEST = 60_000;

const [plan, error] = process.argv.slice(2).map((file) => readFileSync(file, "utf8"));
process.stdout.write(plan === "" ? errorComment(error) : planComment(JSON.parse(plan)));

function planComment({ namespace, entries, counts, registered }) {
  const changes = entries.filter(({ action }) => action !== "unchanged");
  const title = `**Limits of \`${namespace}\`**: `;
  if (changes.length === 0) return `${title}nothing would change.\n`;
  const { create, update, delete: remove, drift } = counts;
  const notes = [
    registered ? "" : " The namespace will be registered.",
    drift === 0 ? "" : ` ${drift} of these were changed by hand since the last apply.`,
  ].join("");
  const summary = `${create} to create, ${update} to update, ${remove} to delete.${notes}`;
  return `${title}${summary}\n\n${fence("diff", changes.flatMap(entryLines))}`;
}

/** A change in the format of a diff, which GitHub colours. */
function entryLines({ action, values, drift, ...place }) {
  const lines = values.flatMap(({ name, before, after }) => [
    ...(before === undefined ? [] : [`-   ${oneLine(`${name}: ${before}`)}`]),
    ...(after === undefined ? [] : [`+   ${oneLine(`${name}: ${after}`)}`]),
  ]);
  const byHand = drift ? " (changed by hand)" : "";
  return [`@@ ${action} ${placeText(place)}${byHand} @@`, ...lines];
}

function placeText({ level, entityId, resource }) {
  if (level === "system") return "system";
  if (level === "resource") return `resource ${resource}`;
  return level === "record" ? `entity ${entityId}` : `entity ${entityId}, resource ${resource}`;
}

function errorComment(text) {
  const { message, problems = [] } = parseError(text);
  const lines = problems.map(({ file, line, column, message: what, suggestion = "" }) => {
    const place = [file, line, column].filter((part) => part !== undefined).join(":");
    return oneLine(`${place}: ${what} ${suggestion}`.trimEnd());
  });
  const shown = lines.length === 0 ? [oneLine(message)] : lines;
  return `**Limits**: the plan failed.\n\n${fence("text", shown)}`;
}

function parseError(text) {
  try {
    return JSON.parse(text).error;
  } catch {
    return { message: text };
  }
}

function fence(language, lines) {
  let length = 0;
  const shown = lines.filter((line) => (length += line.length + 1) <= LONGEST);
  const left = lines.length - shown.length;
  const more = left === 0 ? "" : `\n${left} more lines: run \`zae-limiter limits plan\`.\n`;
  // No line can end the block: those of a diff begin with a sign, and no message with a fence.
  return `\`\`\`${language}\n${shown.join("\n")}\n\`\`\`\n${more}`;
}

/** Metadata may hold line breaks, also in its names. */
function oneLine(text) {
  return JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"');
}
