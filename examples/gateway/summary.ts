import type { DemoResult } from "./demo.ts";
import { numberText, wrapText, type Paint } from "./text.ts";

/** The width of the word at the start of a check, with the space after it. */
const VERDICT_CELLS = 7;
/** What makes a shell read the next line too. */
const CONTINUATION = " \\";

/** What the demo did, and for each promise whether it was kept. */
export function summaryText(result: DemoResult, columns: number, paint: Paint): string {
  const { granted, refused, failed, unavailable, unwritten, byProcess, checks } = result;
  const trouble =
    unavailable + unwritten === 0
      ? ""
      : ` The file was too busy for ${unavailable} calls and ${unwritten} settlements.`;
  const shares = byProcess.map(numberText).join(" and ");
  const counts =
    `${numberText(granted)} calls granted (${shares} by process), ${numberText(failed)} of them ` +
    `failed and were rolled back; ${numberText(refused)} refused.${trouble}`;
  const lines = checks.map(({ promise, ok, detail }) => {
    const verdict = wrapText(
      `${ok ? paint("green", "ok    ") : paint("red", "FAILED")} ${promise}`,
      columns,
      VERDICT_CELLS,
    );
    return `${verdict}\n${wrapText(" ".repeat(VERDICT_CELLS) + detail, columns, VERDICT_CELLS)}\n`;
  });
  const heading = wrapText("Read back from the file by a fresh repository:", columns);
  return `\n${wrapText(counts, columns)}\n\n${heading}\n${lines.join("")}`;
}

/**
 * What to try next on the same file. A line that is too long goes on in the next one, with a
 * backslash for the shell. A test runs these lines exactly as they are printed.
 */
export function nextText(file: string, columns: number): string {
  const url = /^[\w./-]+$/.test(file)
    ? `sqlite:${file}`
    : `'sqlite:${file.replaceAll("'", String.raw`'\''`)}'`;
  const verbs = [
    "usage summary project-apollo",
    "usage list project-apollo --plot",
    "entity children project-apollo",
    "bucket show key-web",
    "available key-web model-large rpm=1 tpm=500",
    "acquire key-web model-small rpm=1 tpm=100 --wait 5",
    "audit list project-apollo",
  ];
  const lines = [
    `export ZAEL_REPOSITORY=${url}`,
    ...verbs.map((verb) => `npx zae-limiter ${verb}`),
  ];
  const commands = lines.map((line) =>
    wrapText(`  ${line}`, columns - CONTINUATION.length, 4).replaceAll("\n", `${CONTINUATION}\n`),
  );
  return `\nTry next, on the same file:\n${commands.join("\n")}\n`;
}
