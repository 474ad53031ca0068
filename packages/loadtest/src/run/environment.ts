import { delimiter } from "node:path";
import { fileURLToPath } from "node:url";

/** What the process of Artillery gets besides its environment. */
export interface ArtilleryVariables {
  readonly target: string;
  readonly ledger: string;
  /** The folder that has this package. */
  readonly engineFolder: string;
}

type Variables = Readonly<Record<string, string | undefined>>;

/**
 * The environment of Artillery's process. Its telemetry is off, and no variable of the user can
 * make it send results anywhere: not to Artillery's cloud, and not by a plugin.
 */
export function buildArtilleryEnvironment(
  { target, ledger, engineFolder }: ArtilleryVariables,
  env: Variables,
): Variables {
  const kept = Object.entries(env).filter(
    ([name]) => !/^(?:ARTILLERY_\w*|WORKER_ID|CUSTOM_REPORTERS)$/.test(name),
  );
  return {
    ...Object.fromEntries(kept),
    ARTILLERY_DISABLE_TELEMETRY: "true",
    CUSTOM_REPORTERS: fileURLToPath(new URL("artillery-reporter.js", import.meta.url)),
    NODE_PATH: [engineFolder, env["NODE_PATH"]].filter(Boolean).join(delimiter),
    ZAEL_LOADTEST_TARGET: target,
    ZAEL_LOADTEST_LEDGER: ledger,
  };
}
