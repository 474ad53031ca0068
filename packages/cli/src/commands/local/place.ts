import type { Command } from "commander";
import { UsageError } from "../../exit.ts";
import type { Session } from "../support/session.ts";
import { LocalFolder } from "./system/local-folder.ts";

/** Which local system a command is about. */
export interface LocalPlace {
  readonly stack: string;
  readonly region: string;
  readonly folder: LocalFolder;
}

/** Engines on this machine ignore the region, but URLs and signatures have one. */
const LOCAL_REGION = "us-east-1";
const DEFAULT_STACK = "zae-limiter";

/** The local system that a command line names: there is one for each stack. */
export function resolveLocalPlace(command: Command, session: Session): LocalPlace {
  const { repository, endpointUrl } = command.optsWithGlobals<{
    readonly repository?: string;
    readonly endpointUrl?: string;
  }>();
  if (repository !== undefined || endpointUrl !== undefined)
    throw new UsageError(
      "A local system has an address of its own. Leave out --repository and --endpoint-url, and " +
        "name it with --stack.",
    );
  const { stack, region = LOCAL_REGION } = session.getStackPlace(command);
  return { stack, region, folder: new LocalFolder(stack, session.environment.env) };
}

/** The options with which another command addresses the same system. */
export function hintFor(stack: string): string {
  return stack === DEFAULT_STACK ? "" : ` --stack ${stack}`;
}
