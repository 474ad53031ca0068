import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** A Python that has the package, or why there is none. */
export type PythonEnvironment = { readonly python: string } | { readonly missing: string };

/** The Python zae-limiter that everything is compared with. */
export const ORIGINAL = "zae-limiter==0.17.0";

const cache = fileURLToPath(new URL("../../../.cache/", import.meta.url));

/**
 * Longer than a slow network needs for thirty small packages; a network that is not there should
 * not hold everybody up.
 */
const INSTALL_TIMEOUT_MS = 120_000;
const PROGRESS_EVERY_MS = 5_000;

/** Compiling everything would take as long as fetching it, and most of it is never imported. */
const PIP_OPTIONS = ["--quiet", "--disable-pip-version-check", "--prefer-binary", "--no-compile"];

/** A virtual environment with one package in it, made once and kept in `.cache`. */
export async function pythonEnvironment(
  requirement: string,
  { mayInstall }: { readonly mayInstall: boolean },
): Promise<PythonEnvironment> {
  const folder = join(cache, requirement.replace("==", "-"));
  const python = join(folder, "bin", "python");
  const complete = join(folder, ".complete");
  if (existsSync(complete)) return { python };
  if (!mayInstall)
    return { missing: `${requirement} is not installed, and a quick run does not install it` };
  rmSync(folder, { recursive: true, force: true });
  const deadlineMs = performance.now() + INSTALL_TIMEOUT_MS;
  const failure =
    (await attempt("python3", ["-m", "venv", folder], {
      doing: `making a virtual environment for ${requirement}`,
      deadlineMs,
    })) ??
    (await attempt(python, ["-m", "pip", "install", ...PIP_OPTIONS, requirement], {
      doing: `installing ${requirement}`,
      deadlineMs,
    }));
  if (failure !== undefined) {
    rmSync(folder, { recursive: true, force: true });
    return { missing: failure };
  }
  writeFileSync(complete, "");
  return { python };
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
