import { existsSync, readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));
const folder = `${root}test/mutations/`;

interface Mutation {
  readonly file: string;
  readonly find: string;
  readonly replace: string;
  readonly test: string;
}

// `npm run mutations` takes minutes; that a change of the code has left one behind shows here.
it("fits every mutation to the code: the text that it replaces is there once, and its test exists", () => {
  const names = readdirSync(folder);
  expect(names.length).toBeGreaterThan(0);
  const misfits = names.flatMap((name) => {
    const mutation = JSON.parse(readFileSync(folder + name, "utf8")) as Mutation;
    return problemsOf(mutation).map((problem) => `${name}: ${problem}`);
  });
  expect(misfits).toEqual([]);
});

function problemsOf({ file, find, replace, test }: Mutation): readonly string[] {
  if (!existsSync(root + file)) return [`there is no ${file}`];
  const count = readFileSync(root + file, "utf8").split(find).length - 1;
  return [
    ...(count === 1 ? [] : [`its text is in ${file} ${count} times`]),
    ...(find === replace ? ["it changes nothing"] : []),
    ...(existsSync(root + test) ? [] : [`there is no ${test}`]),
  ];
}
