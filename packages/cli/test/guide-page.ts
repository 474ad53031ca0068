import { expect } from "vitest";

/** The outcome of a command on a page: its exit code and its output, without machine or time. */
interface Shown {
  readonly code: number;
  readonly printed: string;
}

/**
 * Rewrites a page of the guide as its commands run: every `$ zae-limiter …` line of its console
 * blocks is run in reading order, and what it prints stands below it. `# exit 1` after a command is
 * its exit code. Other commands (`$ export …`) are given to `runOther`, and print nothing. Compare
 * the result with `toMatchFileSnapshot`; `vitest -u` then updates the page.
 */
export async function pageAsRun(
  page: string,
  run: (words: readonly string[]) => Promise<Shown>,
  runOther: (command: string) => Promise<void> = async () => {},
): Promise<string> {
  const rewritten: string[] = [];
  for (const [line, isOutput] of listLines(page)) {
    if (isOutput) continue;
    rewritten.push(line);
    const command = /^\$ zae-limiter (.*?)(?: +# exit (\d))?$/.exec(line);
    if (command === null) {
      if (line.startsWith("$ ")) await runOther(line.slice(2));
      continue;
    }
    const [, text = "", code = "0"] = command;
    const words = [...text.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, bare]) => quoted ?? bare!);
    const shown = await run(words);
    expect({ line, code: shown.code }, shown.printed).toEqual({ line, code: Number(code) });
    rewritten.push(...shown.printed.trimEnd().split("\n"));
  }
  return rewritten.join("\n");
}

/** The lines of a page, and whether each is the output of a command above it. */
function* listLines(text: string): Generator<readonly [line: string, isOutput: boolean]> {
  let inConsole = false;
  for (const line of text.split("\n")) {
    if (line.startsWith("```")) inConsole = line === "```console";
    yield [line, inConsole && !line.startsWith("```") && !line.startsWith("$ ")];
  }
}
