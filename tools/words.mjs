// Finds phrases that a native reader would stop at, in code, tests and documents. The style guide
// is in CONTRIBUTING.md; this keeps the worst out.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));

/** What must not be written, and what to write instead. */
const PHRASES = [
  [/\b(?:nobody|somebody|anybody|everybody|whoever|whomever)\b/i, "name who, or use the passive"],
  [
    /\b(?:is|are|was|were|be|been|gets?) told\b(?! apart)/i,
    '"is notified", "returns", "reports", "logs"',
  ],
  [
    /(?<!\bthere )\b(?:is|are|was|were) no (?!longer\b|more\b|less\b|fewer\b|later\b|earlier\b|older\b|newer\b|better\b|worse\b)[a-z]+/i,
    '"is not a …"',
  ],
  [/\bwhat was taken\b/i, '"the tokens taken", "the charge"'],
  [/\bcalls? of (?:a |the )?models?\b/i, '"model calls"'],
  [/\bgets? ready\b/i, '"becomes available", "finishes"'],
  [/\bas of its begin\b/i, '"as of when it started"'],
  [/\bfor ever\b/i, '"forever"'],
];

/** Files that quote these phrases, with the reason. */
const ALLOWED = new Map([["tools/words.mjs", "it lists them"]]);

const files = execFileSync("git", ["ls-files", "*.ts", "*.mts", "*.mjs", "*.md"], {
  cwd: root,
  encoding: "utf8",
})
  .split("\n")
  .filter((path) => path !== "" && !ALLOWED.has(path));

let found = 0;
for (const path of files) {
  // A comment or a sentence goes on in the next line, so lines are also read in pairs.
  const lines = readText(path).split("\n");
  for (const [index, line] of lines.entries())
    for (const [phrase, instead] of PHRASES) {
      const next = (lines[index + 1] ?? "").replace(/^\s*(?:\*|\/\/|>)?\s*/, "");
      const match = phrase.exec(line) ?? phrase.exec(`${line} ${next}`);
      if (match === null || match.index > line.length) continue;
      console.error(`${path}:${index + 1}: "${match[0]}": write ${instead}`);
      found += 1;
    }
}
if (found > 0)
  console.error(`${found} phrases to reword; see CONTRIBUTING.md, "How our code reads".`);
process.exitCode = found === 0 ? 0 : 1;

/** Empty if the file was deleted but not yet committed. */
function readText(path) {
  try {
    return readFileSync(`${root}${path}`, "utf8");
  } catch {
    return "";
  }
}
