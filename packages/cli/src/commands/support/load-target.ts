import type { Command } from "commander";
import { ValidationError, ZaeLimiterError, type Repository } from "zae-limiter";
import { withoutCredentials } from "zae-limiter/open";
import { UsageError, type ExitCode } from "../../exit.ts";
import { nearest } from "./nearest.ts";
import type { Access, Session } from "./session.ts";

/**
 * Opens the target and asks it once, so that one that cannot be reached is wrong usage, before any
 * load begins.
 */
export async function inTarget(
  session: Session,
  command: Command,
  { url, access }: { readonly url: string; readonly access: Access },
  work: (repository: Repository) => Promise<ExitCode>,
): Promise<void> {
  let isOpen = false;
  try {
    await session.inRepository(
      command,
      access,
      async ({ repository }) => {
        if (!(await repository.ping()))
          throw new UsageError(`${withoutCredentials(url)} cannot be reached. Is it running?`);
        isOpen = true;
        return work(repository);
      },
      { url },
    );
  } catch (error) {
    if (isOpen || !(error instanceof ZaeLimiterError)) throw error;
    throw new UsageError(`${error.message}${suggestScheme(error)}`, { cause: error });
  }
}

/** Whatever prevents a test from beginning is the command line's fault. */
export function orWrongUsage<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof ZaeLimiterError) throw new UsageError(error.message, { cause: error });
    throw error;
  }
}

/** The scheme that was probably meant, of those that the error lists. */
function suggestScheme(error: ZaeLimiterError): string {
  if (!(error instanceof ValidationError) || error.field !== "url") return "";
  const schemes = [...error.reason.matchAll(/\b([a-z]+):/g)].map(([, scheme]) => scheme!);
  const similar = nearest(error.value.split(":")[0]!, schemes);
  return similar === undefined ? "" : `. Did you mean ${similar}:?`;
}
