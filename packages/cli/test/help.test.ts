import { MemoryRepository } from "zae-limiter/memory";
import { beforeEach, expect, it } from "vitest";
import { listExamples, program, verbNames, zaeLimiter, type Outcome } from "./command-line.ts";

let repository: MemoryRepository;

beforeEach(() => {
  repository = new MemoryRepository();
});

const run = (line: string | readonly string[]): Promise<Outcome> =>
  zaeLimiter(line, { repository });

/**
 * Verbs that would reach AWS with the credentials of the developer, or write a file: they are
 * only parsed.
 */
const IS_ONLY_PARSED =
  /^(?:deploy|delete|status|list|version|check|upgrade|lambda-export|loadtest)$/;

/** Parses a command line without running it; throws if it is written wrongly. */
async function parse(words: readonly string[]): Promise<void> {
  const whole = program();
  let verb = whole;
  for (const word of words) verb = verb.commands.find((command) => command.name() === word) ?? verb;
  verb.action(() => {});
  await whole.parseAsync(words, { from: "user" });
}

it.each(verbNames())("the help of %s has an example that parses", async (verb) => {
  const { code, stdout } = await run(`${verb} --help`);
  expect(code).toBe(0);
  expect(stdout).toContain("--repository <url>");
  expect(stdout).toMatch(new RegExp(`Examples?:\\n {2}\\$ zae-limiter ${verb}`));
  for (const words of await listExamples(verb))
    if (IS_ONLY_PARSED.test(words[0]!)) await parse(words);
    else expect((await run(words)).code, words.join(" ")).not.toBe(2);
});

it("shows its help and exits 0 without arguments, as with --help", async () => {
  const alone = await run([]);
  expect(alone).toEqual(await run("--help"));
  expect(alone).toMatchObject({ code: 0, stderr: "", stdout: expect.stringMatching(/^Usage: /) });
});

it("shows the version", async () => {
  expect((await run("--version")).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
});
