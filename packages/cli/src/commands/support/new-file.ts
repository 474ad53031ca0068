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
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "EEXIST")
      throw new UsageError(`${file} exists. Pass --force to replace it, or another --output.`);
    throw new UsageError(`${file} cannot be written: ${message}`);
  }
}
