import type { Command } from "commander";
import { IncompatibleSchemaError, VERSION } from "zae-limiter";
import { withoutCredentials } from "zae-limiter/open";
import type { TableCheck } from "zae-limiter/dynamodb";
import { describeStore } from "../status.ts";
import type { Session } from "./session.ts";

/** The versions of what a command line works on, and whether this client can use it. */
export async function checkVersions(session: Session, command: Command): Promise<TableCheck> {
  const url = session.findStacklessUrl(command);
  if (url !== undefined) return checkStackless(session, command, url);
  const { checkTable } = await import("zae-limiter/dynamodb");
  return checkTable(session.getStackPlace(command));
}

/** The same for a repository without a stack, where nothing is deployed beside the data. */
async function checkStackless(
  session: Session,
  command: Command,
  url: string,
): Promise<TableCheck> {
  const none = { lambdaVersion: undefined, clientMinVersion: undefined, lambda: "none" } as const;
  const about = { clientVersion: VERSION, ...none };
  let schemaVersion: string | undefined;
  try {
    await session.inRepository(command, "existing", async ({ repository }) => {
      schemaVersion = (await describeStore(repository)).dataVersion;
    });
  } catch (error) {
    if (!(error instanceof IncompatibleSchemaError)) throw error;
    const { message } = error;
    return { ...about, schemaVersion: error.schemaVersion, state: "schema too new", message };
  }
  const schema = schemaVersion === undefined ? "" : ` has schema ${schemaVersion}, which`;
  const message = `${withoutCredentials(url)}${schema} works with this client. It has no stack, so nothing is deployed.`;
  return { ...about, schemaVersion, state: "compatible", message };
}
