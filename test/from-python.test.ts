// The page that maps names of the Python zae-limiter names only what exists here.
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { program } from "../packages/cli/test/command-line.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const page = readFileSync(`${root}docs/guide/from-python.md`, "utf8");

const declared = readdirSync(`${root}test/api`)
  .filter((name) => /^declared.*\.d\.ts$/.test(name))
  .map((name) => readFileSync(`${root}test/api/${name}`, "utf8"))
  .join("\n");

const INSTANCES: Readonly<Record<string, string>> = {
  repository: "Repository",
  limiter: "RateLimiter",
  lease: "Lease",
};

/** The code in the cells below "here". */
function namesIn(section: string): readonly string[] {
  const [, body = ""] =
    new RegExp(`<!-- ${section} -->\n(.*?)<!-- /${section} -->`, "s").exec(page) ?? [];
  const rows = body.split("\n").filter((line) => /^\| (?!there)/.test(line));
  return rows
    .flatMap((row) => [...row.split("|")[2]!.matchAll(/`([^`]+)`/g)].map(([, code]) => code!))
    .map((name) => name.replace(/: ".*"$/, ""));
}

/** Whether a package, a declaration, a member of one, or an option is declared. */
function isDeclared(name: string): boolean {
  if (name.includes("/")) return declared.includes(`declare module "declared/${name}"`);
  if (name.startsWith("ZAEL_"))
    return readFileSync(`${root}docs/guide/dynamodb.md`, "utf8").includes(name);
  const [owner = "", member] = name.split(".");
  if (member === undefined) return new RegExp(`\\b${owner}\\b`).test(declared);
  const type = INSTANCES[owner] ?? owner;
  const body = new RegExp(`^  export (?:class|interface|const|type) ${type}\\b.*?^  \\}`, "gms");
  return new RegExp(`\\b${member}\\b`).test(declared.match(body)?.join() ?? "");
}

it("names only members, options and packages that are declared", () => {
  const names = namesIn("names");
  expect(names.length).toBeGreaterThan(120);
  expect(names.filter((name) => !isDeclared(name))).toEqual([]);
});

it("names only commands and options of the command line", () => {
  const all = program();
  const flagsOf = (command: typeof all): readonly string[] =>
    command.options.map(({ long }) => long!);
  const isKnown = (line: string): boolean => {
    const words = line.split(" ");
    let command = all;
    const flags = words.filter((word) => {
      if (word.startsWith("--")) return true;
      command = command.commands.find((each) => each.name() === word) ?? expect.fail(line);
      return false;
    });
    return flags.every((flag) => [...flagsOf(command), ...flagsOf(all)].includes(flag));
  };
  const lines = namesIn("command line");
  expect(lines.length).toBeGreaterThan(40);
  expect(lines.filter((line) => !isKnown(line))).toEqual([]);
});
