import { createRequire } from "node:module";
import type * as CdkModule from "aws-cdk-lib";
import type * as ConstructsModule from "constructs";
import { InfrastructureNotFoundError } from "zae-limiter";

interface Peers {
  readonly "aws-cdk-lib": typeof CdkModule;
  readonly constructs: typeof ConstructsModule;
}

/**
 * Loads a package that only users of the construct have. By `require`, because an app whose files
 * are CommonJS cannot load a module that awaits something.
 */
export function loadPeer<Name extends keyof Peers>(name: Name, load = defaultLoad): Peers[Name] {
  try {
    return load(name) as Peers[Name];
  } catch (error) {
    if ((error as { code?: unknown }).code !== "MODULE_NOT_FOUND") throw error;
    throw new InfrastructureNotFoundError(
      `The construct of zae-limiter needs ${name}: run npm install aws-cdk-lib constructs.`,
      { cause: error },
    );
  }
}

const defaultLoad: (name: string) => unknown = createRequire(import.meta.url);
