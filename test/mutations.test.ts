import { existsSync, readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));
const folder = `${root}test/mutations/`;

/** More than this takes too long to run at once and to keep up to date. */
const MOST = 230;

const BACKENDS = ["memory", "sqlite", "dynamodb"];

/** The promises that a backend keeps. The others are kept above the backends. */
const OF_BACKENDS = new Set([1, 2, 3, 4, 5, 7, 8, 9, 10]);

interface Mutation {
  readonly name: string;
  readonly guards: string;
  readonly fixed?: boolean;
  readonly backend?: string;
  readonly file: string;
  readonly find: string;
  readonly replace: string;
  readonly test: string;
}

const mutations = readdirSync(folder).map((name) =>
  Object.assign(JSON.parse(readFileSync(folder + name, "utf8")) as Mutation, { name }),
);

// `npm run mutations` takes minutes; that a change of the code has left one behind shows here.
describe("mutations", () => {
  it("fit the code: the text that each replaces is there once, and its test exists", () => {
    expect(mutations.flatMap(findProblems)).toEqual([]);
  });

  it("are few, and each names the promise or the past bug that it guards", () => {
    const promises = findPromises();
    const unnamed = mutations.filter(
      ({ guards }) =>
        !/^past bug: \S/.test(guards) &&
        !(/: \S/.test(guards) && promises.has(findPromise(guards))),
    );
    expect(unnamed.map(({ name }) => name)).toEqual([]);
    expect(mutations.length).toBeLessThanOrEqual(MOST);
  });

  it("have a fixed set that breaks each promise, on each backend that keeps it", () => {
    const fixed = mutations.filter((mutation) => mutation.fixed);
    const broken = new Set(
      fixed.flatMap(({ guards, backend }) => [
        `${findPromise(guards)}`,
        `${findPromise(guards)} on ${backend}`,
      ]),
    );
    const wanted = [...findPromises()].flatMap((promise) =>
      OF_BACKENDS.has(promise)
        ? BACKENDS.map((backend) => `${promise} on ${backend}`)
        : [`${promise}`],
    );
    expect(wanted.filter((one) => !broken.has(one))).toEqual([]);
  });
});

function findProblems({ name, file, find, replace, test }: Mutation): readonly string[] {
  if (!existsSync(root + file)) return [`${name}: there is no ${file}`];
  const count = readFileSync(root + file, "utf8").split(find).length - 1;
  return [
    ...(count === 1 ? [] : [`${name}: its text is in ${file} ${count} times`]),
    ...(find === replace ? [`${name}: it changes nothing`] : []),
    ...(existsSync(root + test) ? [] : [`${name}: there is no ${test}`]),
  ];
}

/** The number in "promise 5: …"; NaN for a past bug. */
function findPromise(guards: string): number {
  return Number(/^promise (\d+):/.exec(guards)?.[1]);
}

/** The numbers of the promises in ARCHITECTURE.md. */
function findPromises(): ReadonlySet<number> {
  const page = readFileSync(`${root}ARCHITECTURE.md`, "utf8");
  return new Set([...page.matchAll(/^\| (\d+) \|/gm)].map(([, number]) => Number(number)));
}
