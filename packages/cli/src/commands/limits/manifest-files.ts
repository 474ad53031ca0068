import { readdir, readFile, realpath, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { InvalidArgumentError, Option } from "commander";
import type { Manifest, ManifestDocument, ManifestProblem } from "zae-limiter/manifest";
import type { Environment } from "../../environment.ts";

/** The options of the verbs that read a manifest. */
export interface FileOptions {
  readonly file: readonly string[];
}

/** `--file` of the verbs that read a manifest. */
export function fileOption(): Option {
  return new Option(
    "-f, --file <file...>",
    "The files of the manifest; a folder stands for all YAML and JSON files in it, and - for " +
      "standard input. Repeat it for more.",
  )
    .argParser(withFileName)
    .makeOptionMandatory();
}

/**
 * Adds a name to those before it. An empty one, as of a variable that is not set, is not a file.
 */
function withFileName(name: string, before: readonly string[] = []): readonly string[] {
  if (name === "") throw new InvalidArgumentError("It must be the name of a file or a folder.");
  return [...before, name];
}

/** The name that stands for standard input. */
export const STANDARD_INPUT = "-";

/**
 * Reads files and folders as one manifest. Throws `ManifestError` with everything that is wrong
 * with any of them.
 */
export async function readManifestFiles(
  names: readonly string[],
  { stdin }: Pick<Environment, "stdin">,
): Promise<Manifest> {
  // Loaded on first use: no other verb needs a parser.
  const [{ yamlDocument }, { ManifestError, readManifest }] = await Promise.all([
    import("@zae-limiter/infra/manifest"),
    import("zae-limiter/manifest"),
  ]);
  const files = new ManifestFiles();
  for (const name of names) await files.add(name);
  const problems: ManifestProblem[] = [...files.problems];
  const collect = <T>(check: () => T): T | undefined => {
    try {
      return check();
    } catch (error) {
      if (!(error instanceof ManifestError)) throw error;
      problems.push(...error.problems);
      return undefined;
    }
  };
  const documents: ManifestDocument[] = [];
  for (const { name, path } of files.found) {
    const text = await readText(path === STANDARD_INPUT ? stdin : path);
    if (typeof text === "object") problems.push(toProblem(name, text.problem));
    else documents.push(...(collect(() => [yamlDocument(name, text)]) ?? []));
  }
  const unread = problems.length === 0 ? [] : [UNREAD];
  const manifest = collect(() => readManifest([...documents, ...unread]));
  if (manifest !== undefined && problems.length === 0) return manifest;
  throw new ManifestError(problems.filter(({ file }) => file !== UNREAD.file));
}

/**
 * Stands for files that could not be read, so that nothing in them is reported as missing. Problems
 * of this file itself are left out; no real file has an empty name.
 */
const UNREAD: ManifestDocument = { file: "", content: undefined, findPosition: () => undefined };

interface FoundFile {
  /** Its name in messages. */
  readonly name: string;
  readonly path: string;
}

const IS_READ = /\.(?:ya?ml|json)$/i;

/** The files that names stand for, each once, and the problems of the names. */
class ManifestFiles {
  readonly found: FoundFile[] = [];
  readonly problems: ManifestProblem[] = [];
  /** The visited paths: a file may be named twice, and links may lead back to a folder. */
  readonly #seen = new Set<string>();

  async add(name: string): Promise<void> {
    if (name === STANDARD_INPUT) return this.#addFile("<stdin>", name, name);
    if ((await this.#visit(name, { isNamed: true })) > 0) return;
    this.problems.push(toProblem(name, "The folder has no file *.yaml, *.yml or *.json."));
  }

  /** Returns how many files and problems there are, also those that were found before. */
  async #visit(path: string, { isNamed }: { readonly isNamed: boolean }): Promise<number> {
    try {
      if ((await stat(path)).isDirectory()) return await this.#visitFolder(path);
      if (!isNamed && !IS_READ.test(path)) return 0;
      this.#addFile(path, path, await findIdentity(path));
    } catch (error) {
      this.problems.push(toProblem(path, toReason(error)));
    }
    return 1;
  }

  async #visitFolder(folder: string): Promise<number> {
    if (!this.#isNew(`${await findIdentity(folder)}/`)) return 1;
    let count = 0;
    for (const entry of (await readdir(folder)).toSorted())
      if (!entry.startsWith(".") && entry !== "node_modules")
        count += await this.#visit(join(folder, entry), { isNamed: false });
    return count;
  }

  #addFile(name: string, path: string, identity: string): void {
    if (this.#isNew(identity)) this.found.push({ name, path });
  }

  #isNew(identity: string): boolean {
    if (this.#seen.has(identity)) return false;
    this.#seen.add(identity);
    return true;
  }
}

/** A pipe such as `<(command)` has a name, but no real path. */
async function findIdentity(path: string): Promise<string> {
  return realpath(path).catch(() => resolve(path));
}

async function readText(
  source: string | Environment["stdin"],
): Promise<string | { readonly problem: string }> {
  let bytes: Uint8Array;
  try {
    bytes = typeof source === "string" ? await readFile(source) : await readAll(source);
  } catch (error) {
    return { problem: toReason(error) };
  }
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return { problem: "It is not text in UTF-8." };
  }
}

async function readAll(input: Environment["stdin"]): Promise<Uint8Array> {
  const chunks: Buffer[] = [];
  for await (const chunk of input) chunks.push(Buffer.from(chunk as string | Buffer));
  return Buffer.concat(chunks);
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: "There is no such file.",
  ENOTDIR: "There is no such file.",
  EACCES: "It cannot be read: permission denied.",
};

function toReason(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return REASONS[code ?? ""] ?? `It cannot be read: ${message}.`;
}

function toProblem(file: string, message: string): ManifestProblem {
  return { file, line: undefined, column: undefined, path: "", message, suggestion: undefined };
}
