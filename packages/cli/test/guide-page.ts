import { expect } from "vitest";

/** What a command of a page did: its exit code, and what it printed, of no machine or moment. */
interface Shown {
  readonly code: number;
  readonly printed: string;
}

/**
 * A page of the guide as it ought to be: every `$ zae-limiter …` line of its console blocks is run
 * in reading order, and what it prints stands below it. `# exit 1` after a command says that it
 * exits so. Other commands (`$ export …`) are given to `runOther`, and print nothing. Compare the
 * result with `toMatchFileSnapshot`; `vitest -u` then updates the page.
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
