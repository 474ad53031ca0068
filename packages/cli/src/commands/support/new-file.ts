import { writeFile } from "node:fs/promises";
import { UsageError } from "../../exit.ts";

/** Writes a file. Without `force` it must be new, which is asked of the write itself. */
export async function writeNewFile(
  file: string,
  content: string | Uint8Array,
  { force = false }: { readonly force?: boolean },
): Promise<void> {
  try {
    await writeFile(file, content, { flag: force ? "w" : "wx" });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EEXIST")
      throw new UsageError(`${file} exists. Pass --force to overwrite it, or another name.`);
    if (code === "ENOENT" || code === "ENOTDIR")
      throw new UsageError(`${file} cannot be written: its folder does not exist.`);
    throw error;
  }
}
