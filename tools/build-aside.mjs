import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";

/**
 * Has a folder built, unless it exists, and returns it. It is built aside and renamed, so that an
 * interrupted build does not look like a finished one; `build` gets the folder to build in.
 */
export function buildAside(folder, build) {
  if (existsSync(folder)) return folder;
  const draft = `${folder}.${process.pid}`;
  mkdirSync(draft, { recursive: true });
  try {
    build(draft);
    // Another process may have been faster.
    if (!existsSync(folder)) renameSync(draft, folder);
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
  return folder;
}
