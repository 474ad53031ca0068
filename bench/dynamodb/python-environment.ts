import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** A Python that has a release of the Python zae-limiter, or why there is none. */
export type PythonEnvironment = { readonly python: string } | { readonly missing: string };

/** The release that everything is compared with. */
export const ORIGINAL = "0.17.0";

const root = fileURLToPath(new URL("../../../", import.meta.url));

/**
 * Longer than a slow network needs for thirty small packages; a network that is not there should
 * not hold up the others.
 */
const INSTALL_TIMEOUT_MS = 120_000;
const PROGRESS_EVERY_MS = 5_000;

/** The Python of a release, fetched once and kept in `.cache`. */
export async function pythonEnvironment(
  release: string,
  { mayInstall }: { readonly mayInstall: boolean },
): Promise<PythonEnvironment> {
  const python = join(root, ".cache", `python-zae-limiter-${release}`, "bin", "python");
  if (existsSync(python)) return { python };
  const name = `zae-limiter ${release}`;
  if (!mayInstall)
    return { missing: `${name} is not installed, and a quick run does not install it` };
  const tool = join(root, "tools", "python-release.mjs");
  const failure = await attempt(process.execPath, [tool, release], {
    doing: `fetching ${name}`,
    deadlineMs: performance.now() + INSTALL_TIMEOUT_MS,
  });
  return failure === undefined ? { python } : { missing: failure };
}

/** What went wrong, if anything did. */
async function attempt(
  command: string,
  args: readonly string[],
  { doing, deadlineMs }: { readonly doing: string; readonly deadlineMs: number },
): Promise<string | undefined> {
  // In a group of its own, so that what pip starts is ended with it.
  const child = spawn(command, args, { stdio: ["ignore", "ignore", "pipe"], detached: true });
  const kill = (): void => {
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, "SIGKILL");
  };
  let complaint = "";
  child.stderr.on("data", (chunk: Buffer) => (complaint = `${complaint}${chunk}`.slice(-500)));
  const startedMs = performance.now();
  const progress = setInterval(
    () => console.log(`  … ${doing}: ${Math.round((performance.now() - startedMs) / 1000)} s`),
    PROGRESS_EVERY_MS,
  );
  const timeout = setTimeout(kill, deadlineMs - startedMs);
  process.once("exit", kill);
  try {
    const [code] = (await once(child, "close")) as [number | null];
    if (code === 0) return undefined;
    return `${doing} ${code === null ? "took too long" : `failed: ${complaint.trim().split("\n").at(-1)}`}`;
  } catch (error) {
    return `${doing} failed: ${(error as Error).message}`;
  } finally {
    clearInterval(progress);
    clearTimeout(timeout);
    process.off("exit", kill);
  }
}
