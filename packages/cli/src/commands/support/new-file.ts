import { link, mkdtemp, realpath, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Command } from "commander";
import { UsageError } from "../../exit.ts";
import { printable } from "../../output/text.ts";
import type { Session } from "./session.ts";

/** The options with which a verb writes its text to a file. */
export interface OutputFlags {
  readonly output?: string;
  readonly force?: boolean;
}

/** The name that stands for standard output. */
const STANDARD_OUTPUT = "-";

/** The file that `--output` names; undefined if the text goes to standard output. */
export function outputFile({ output }: OutputFlags): string | undefined {
  return output === STANDARD_OUTPUT ? undefined : output;
}

/** Refuses a file that may not be overwritten. Call it before the work whose result goes there. */
export async function checkOutput(flags: OutputFlags): Promise<void> {
  const file = outputFile(flags);
  if (file === undefined || flags.force === true) return;
  if ((await stat(file).catch(() => undefined)) !== undefined) throw buildFileExistsError(file);
}

/** Writes a text to the file that `--output` names, and says so, or to standard output. */
export async function writeOutput(
  text: string,
  flags: OutputFlags,
  { session, command }: { readonly session: Session; readonly command: Command },
): Promise<void> {
  const file = outputFile(flags);
  if (file === undefined) {
    session.environment.stdout.write(text);
    return;
  }
  await writeNewFile(file, text, flags);
  session.screen(command).show({ file }, () => `Wrote ${printable(file)}.\n`);
}

/**
 * Writes a file, whole or not at all: readers never see a part of it, even after an interruption.
 * Without `force` it must be new.
 */
export async function writeNewFile(
  file: string,
  content: string | Uint8Array,
  { force = false }: { readonly force?: boolean },
): Promise<void> {
  if (file === "") throw new UsageError("--output must be the name of a file.");
  try {
    await write(file, content, force);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EEXIST") throw buildFileExistsError(file);
    if (code === "ENOENT" || code === "ENOTDIR")
      throw new UsageError(`${file} cannot be written: its folder does not exist.`);
    if (code === "EISDIR") throw new UsageError(`${file} is a folder. Name a file in it.`);
    throw error;
  }
}

function buildFileExistsError(file: string): UsageError {
  return new UsageError(`${file} exists. Pass --force to overwrite it, or another name.`);
}

async function write(file: string, content: string | Uint8Array, force: boolean): Promise<void> {
  const stored = await stat(file).catch(() => undefined);
  // Only a plain file can be replaced, not /dev/stdout for instance; writing to a folder fails
  // anyway.
  if (stored !== undefined && !stored.isFile())
    return writeFile(file, content, { flag: force ? "w" : "wx" });
  // A link stays, and its target is replaced.
  const target = stored === undefined ? file : await realpath(file);
  const folder = await mkdtemp(join(dirname(target), ".zae-limiter-"));
  try {
    const draft = join(folder, "draft");
    await writeFile(draft, content, stored === undefined ? {} : { mode: stored.mode });
    if (force) await rename(draft, target);
    else await linkOrWrite(draft, target, content);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** A second name for the draft, unless the name is taken. Some file systems have no links. */
async function linkOrWrite(
  draft: string,
  target: string,
  content: string | Uint8Array,
): Promise<void> {
  try {
    await link(draft, target);
  } catch (error) {
    const { code = "" } = error as NodeJS.ErrnoException;
    if (!NO_LINKS.has(code)) throw error;
    await writeFile(target, content, { flag: "wx" });
  }
}

const NO_LINKS: ReadonlySet<string> = new Set(["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS"]);
