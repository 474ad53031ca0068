import { writeFile } from "node:fs/promises";
import { UsageError } from "../../exit.ts";

/** Writes a file. Without `force` it must be new, which is asked of the write itself. */
export async function writeNewFile(
  file: string,
  content: string | Uint8Array,
  { force = false }: { readonly force?: boolean },
): Promise<void> {
  if (file === "") throw new UsageError("--output must be the name of a file.");
  try {
    await writeFile(file, content, { flag: force ? "w" : "wx" });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EEXIST")
      throw new UsageError(`${file} exists. Pass --force to overwrite it, or another name.`);
    if (code === "ENOENT" || code === "ENOTDIR")
      throw new UsageError(`${file} cannot be written: its folder does not exist.`);
    if (code === "EISDIR") throw new UsageError(`${file} is a folder. Name a file in it.`);
    throw error;
  }
}
