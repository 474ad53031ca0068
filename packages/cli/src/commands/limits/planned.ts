import type { Command } from "commander";
import { InfrastructureNotFoundError, type Repository } from "zae-limiter";
import type { LimitsPlan, Manifest } from "zae-limiter/manifest";
import { EXIT, UsageError } from "../../exit.ts";
import { listChanges, planModel, type ShownPlan } from "../../output/plan.ts";
import type { Colours } from "../../output/colours.ts";
import type { Session } from "../support/session.ts";
import { addVerb, type Verb } from "../support/verb.ts";
import { fileOption, readManifestFiles, type FileOptions } from "./manifest-files.ts";

/** Adds a verb that compares a manifest with the store, and changes nothing. */
export function addComparison(
  limits: Command,
  session: Session,
  { text, ...verb }: Verb & { readonly text: (plan: ShownPlan, colours: Colours) => string },
): void {
  addVerb(limits, verb)
    .addOption(fileOption())
    .action(async ({ file }: FileOptions, command: Command) => {
      const manifest = await readGivenManifest(session, command, file);
      const compared = session.inRepository(command, "existing", async ({ repository, screen }) => {
        const shown = await buildPlan(repository, manifest);
        screen.show(planModel(shown), () => text(shown, screen.colours));
        return listChanges(shown.plan.entries).length === 0 ? EXIT.done : EXIT.differs;
      });
      await compared.catch((error: unknown) => {
        if (error instanceof InfrastructureNotFoundError) adviseApply(error, file);
        throw error;
      });
    });
}

/**
 * Suggests `limits apply` as the verb that creates the repository, instead of one whose limits
 * would belong to no manifest.
 */
function adviseApply(error: Error, files: readonly string[]): void {
  const names = files.map((name) => ` "${name}"`).join("");
  const advice = (): string => ` limits apply -f${names}`;
  error.message = error.message.replace(/ system set-defaults [^"]*$/, advice);
}

/** Reads the manifest of a verb. The verb works in its namespace, and no other one may be given. */
export async function readGivenManifest(
  session: Session,
  command: Command,
  files: readonly string[],
): Promise<Manifest> {
  const manifest = await readManifestFiles(files, session.environment);
  const given = session.findGivenNamespace(command);
  if (given === undefined || given.name === manifest.namespace) return manifest;
  throw new UsageError(
    `The manifest is about the namespace ${manifest.namespace}, but ${given.by} says ` +
      `${given.name}. Leave ${given.by} out, or correct one of the two.`,
  );
}

/** Plans an apply. A namespace that is not registered is empty, and stays unregistered. */
export async function buildPlan(repository: Repository, manifest: Manifest): Promise<ShownPlan> {
  const { namespace } = manifest;
  if ((await repository.getNamespace(namespace)) === undefined)
    return { plan: await planFromNothing(manifest), isRegistered: false };
  const { planLimits } = await import("zae-limiter/manifest");
  const scoped = await repository.namespace(namespace);
  return { plan: await planLimits(scoped, manifest), isRegistered: true };
}

/** Plans an apply in an empty namespace. */
export async function planFromNothing(manifest: Manifest): Promise<LimitsPlan> {
  const { planLimits } = await import("zae-limiter/manifest");
  const { MemoryRepository } = await import("zae-limiter/memory");
  const { namespace } = manifest;
  const empty = new MemoryRepository({ namespace });
  try {
    return await planLimits(empty, manifest);
  } finally {
    await empty.close();
  }
}
