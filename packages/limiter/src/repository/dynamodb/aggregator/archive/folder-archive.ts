import { randomUUID } from "node:crypto";
import { mkdir, open, rename, rm } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import {
  PermissionDenied,
  ValidationError,
  type InfrastructureError,
} from "../../../../core/errors.ts";
import type { AuditArchive } from "./archive.ts";
import { buildArchiveFullError, buildArchiveUnavailableError } from "./archive-errors.ts";

/**
 * Keeps audit events in a folder, which is created when the first object is stored.
 *
 * @example
 * const archive = folderArchive("./archive");
 * const aggregator = await openAggregator({ stack: "limits", archive });
 */
export function folderArchive(path: string): AuditArchive {
  if (typeof path !== "string" || path === "")
    throw new ValidationError("archive", path, "must be the path of a folder");
  const root = resolve(path);
  return {
    async store(name, content) {
      try {
        await storeFile(root, name, content);
      } catch (error) {
        throw folderError(root, error);
      }
    },
  };
}

/**
 * Writes aside and renames, so that a file with its final name is whole; and syncs, so that
 * it outlasts a power cut. What a killed process has left ends in `.draft`.
 */
async function storeFile(root: string, name: string, content: Uint8Array): Promise<void> {
  const path = join(root, name);
  const draft = `${path}.${randomUUID()}.draft`;
  await makeFolder(dirname(path));
  try {
    const file = await open(draft, "wx");
    try {
      await file.writeFile(content);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
  await syncFolders(dirname(path), root);
}

/**
 * Makes a folder and those above it. Node does that too, but says of a file system that may only be
 * read that the folder does not exist, and never comes to an end in /proc, which says of every new
 * folder that those above it are missing.
 */
async function makeFolder(path: string): Promise<void> {
  try {
    await makeLast(path);
  } catch (error) {
    if ((error as { readonly code?: string }).code !== "ENOENT" || path === dirname(path))
      throw error;
    await makeFolder(dirname(path));
    await makeLast(path);
  }
}

/** Makes a folder in one that exists, unless it exists itself. */
async function makeLast(path: string): Promise<void> {
  try {
    await mkdir(path);
  } catch (error) {
    if ((error as { readonly code?: string }).code !== "EEXIST") throw error;
  }
}

/** A new name is safe once the folders above it are synced. Windows cannot do that. */
async function syncFolders(from: string, root: string): Promise<void> {
  if (process.platform === "win32") return;
  for (let path = from; ; path = dirname(path)) {
    const folder = await open(path, "r");
    try {
      await folder.sync();
    } finally {
      await folder.close();
    }
    if (path === root) return;
  }
}

const FULL: ReadonlySet<string> = new Set(["ENOSPC", "EDQUOT", "EFBIG"]);
const FORBIDDEN: ReadonlySet<string> = new Set(["EACCES", "EPERM", "EROFS"]);

function folderError(root: string, error: unknown): InfrastructureError {
  const { code = "" } = error as { readonly code?: string };
  if (FULL.has(code)) return buildArchiveFullError(root, error);
  if (FORBIDDEN.has(code))
    return new PermissionDenied(
      `The archive ${root} may not be written (${code}): allow this user to write there, or choose another folder.`,
      { cause: error },
    );
  return buildArchiveUnavailableError(root, error);
}
