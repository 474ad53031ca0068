import type { UsageWindow } from "zae-limiter";
import {
  findEndpoint,
  requireVariable,
  tableSettings,
  type Environment,
  type TableSettings,
} from "../runtime/environment.ts";

/** The settings in the environment of the function. */
export interface Settings extends TableSettings {
  readonly windows: readonly UsageWindow[];
  /** For how many fill times an idle bucket is kept; undefined: the library's default. */
  readonly bucketTtlMultiplier: number | undefined;
  /** For how many days usage is kept by default; undefined: the library's default. */
  readonly usageRetentionDays: number | undefined;
  /** The bucket that audit events go to when they expire; undefined: nowhere. */
  readonly archive:
    | { readonly bucket: string; readonly endpointUrl: string | undefined }
    | undefined;
}

const WINDOWS: readonly UsageWindow[] = ["hourly", "daily", "monthly"];

/** Reads the settings, or throws an error whose message is one sentence. */
export function readSettings(environment: Environment): Settings {
  return {
    ...tableSettings(environment),
    windows: parseWindows(environment["SNAPSHOT_WINDOWS"]),
    bucketTtlMultiplier: wholeNumber(environment, "BUCKET_TTL_MULTIPLIER"),
    usageRetentionDays: wholeNumber(environment, "SNAPSHOT_TTL_DAYS"),
    archive: isArchiving(environment)
      ? {
          bucket: requireVariable(environment, "ARCHIVE_BUCKET_NAME", "the bucket of the archive"),
          endpointUrl: findEndpoint(environment, "S3"),
        }
      : undefined,
  };
}

function parseWindows(text: string | undefined): readonly UsageWindow[] {
  if (!text) return WINDOWS;
  const names = new Set(text.split(",").map((name) => name.trim()));
  const windows = WINDOWS.filter((window) => names.has(window));
  if (windows.length === names.size) return windows;
  throw new Error(
    `SNAPSHOT_WINDOWS must be a list of ${WINDOWS.join(", ")}, separated by commas, not '${text}'.`,
  );
}

function wholeNumber(environment: Environment, name: string): number | undefined {
  const text = environment[name];
  if (!text) return undefined;
  // The library checks the range.
  if (/^\d{1,5}$/.test(text)) return Number(text);
  throw new Error(`${name} must be a whole number, not '${text}'.`);
}

/** A bucket enables the archive, unless it is switched off. */
function isArchiving(environment: Environment): boolean {
  const text = environment["ENABLE_ARCHIVAL"];
  if (!text) return Boolean(environment["ARCHIVE_BUCKET_NAME"]);
  if (text === "true" || text === "false") return text === "true";
  throw new Error(`ENABLE_ARCHIVAL must be true or false, not '${text}'.`);
}
