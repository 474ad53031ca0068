import { createRequire } from "node:module";
import { InfrastructureNotFoundError } from "zae-limiter";

/**
 * Loads a package that only users of the construct have. By `require`, because an app whose files
 * are CommonJS cannot load a module that awaits something.
 */
export function loadPeer<Package>(name: "aws-cdk-lib" | "constructs", load = defaultLoad): Package {
  try {
    return load(name) as Package;
  } catch (error) {
    if ((error as { code?: unknown }).code !== "MODULE_NOT_FOUND") throw error;
    throw new InfrastructureNotFoundError(
      `The construct of zae-limiter needs ${name}: run npm install aws-cdk-lib constructs.`,
      { cause: error },
    );
  }
}

const defaultLoad: (name: string) => unknown = createRequire(import.meta.url);
