import type { Command } from "commander";
import { ApplyConflictError, type Repository } from "zae-limiter";
import type { ApplyError, ApplyProgress, ApplyReport, Manifest } from "zae-limiter/manifest";
import { UsageError } from "../../exit.ts";
import { formatAdopted, listChanges, planText, type ShownPlan } from "../../output/plan.ts";
import type { Screen } from "../../output/screen.ts";
import { numberText } from "../../output/text.ts";
import type { Session } from "../support/session.ts";
import { addVerb, yesOption } from "../support/verb.ts";
import { fileOption, STANDARD_INPUT, type FileOptions } from "./manifest-files.ts";
import { readGivenManifest, buildPlan, planFromNothing } from "./planned.ts";

interface ApplyFlags extends FileOptions {
  readonly yes?: boolean;
}

/** Adds `limits apply`. */
export function addApplyCommand(limits: Command, session: Session): void {
  addVerb(limits, {
    usage: "apply",
    summary:
      "Changes what is stored to what files declare. Shows the plan and asks first. " +
      "To continue after an interruption, run it again.",
    examples: ["limits apply -f limits.yaml --yes", "limits apply -f limits/ --yes"],
  })
    .addOption(fileOption())
    .addOption(yesOption())
    .action(async (flags: ApplyFlags, command: Command) => {
      const manifest = await readGivenManifest(session, command, flags.file);
      const verb = new ApplyVerb(session, session.screen(command), { manifest, flags });
      let agreed: ShownPlan | undefined;
      await session.inRepository(
        command,
        "create",
        async ({ repository }) => {
          agreed ??= await verb.agree(await buildPlan(repository, manifest));
          await verb.apply(repository, agreed);
        },
        {
          // Declining the plan leaves nothing behind.
          beforeCreation: async () => {
            const plan = await planFromNothing(manifest);
            agreed = await verb.agree({ plan, isRegistered: false });
          },
        },
      );
    });
}

/** The most changes that are listed before the question; `limits plan` lists all. */
const MOST_LISTED = 100;

/** One run of the verb. */
class ApplyVerb {
  readonly #session: Session;
  readonly #screen: Screen;
  readonly #manifest: Manifest;
  readonly #flags: ApplyFlags;

  constructor(
    session: Session,
    screen: Screen,
    { manifest, flags }: { readonly manifest: Manifest; readonly flags: ApplyFlags },
  ) {
    this.#session = session;
    this.#screen = screen;
    this.#manifest = manifest;
    this.#flags = flags;
  }

  /** Shows a plan and asks whether to carry it out, unless it changes nothing. */
  async agree(shown: ShownPlan): Promise<ShownPlan> {
    const { yes = false, file } = this.#flags;
    const changes = listChanges(shown.plan.entries).length;
    if (changes === 0 && shown.isRegistered) return shown;
    if (!this.#screen.json)
      this.#screen.notice(planText(shown, this.#screen.colours, MOST_LISTED).trimEnd());
    const { namespace } = shown.plan;
    const question =
      changes === 0
        ? `Register namespace ${namespace}?`
        : `Apply ${changesText(changes)} to namespace ${namespace}?`;
    if (!yes && file.includes(STANDARD_INPUT))
      throw new UsageError(
        `${question} Standard input is the manifest, so it cannot answer. Pass --yes to confirm.`,
      );
    await this.#session.confirm(question, { yes });
    return shown;
  }

  /** Carries out the confirmed plan, and no other one if a person was asked. */
  async apply(repository: Repository, shown: ShownPlan): Promise<void> {
    const { plan, isRegistered } = shown;
    const manifests = await import("zae-limiter/manifest");
    const { namespace } = this.#manifest;
    if (!isRegistered) await repository.registerNamespace(namespace);
    const scoped = await repository.namespace(namespace);
    const interruption = new AbortController();
    const stopListening = this.#session.environment.onInterrupt(() =>
      interruption.abort(new Error("interrupted.")),
    );
    let report: ApplyReport;
    try {
      report = await manifests.applyLimits(scoped, this.#manifest, {
        // `--yes` confirms the manifest, not a certain plan: of two concurrent applies, one
        // succeeds.
        ...(this.#flags.yes !== true && { plan }),
        signal: interruption.signal,
        onProgress: (progress) => this.#show(progress),
      });
    } catch (error) {
      if (error instanceof ApplyConflictError) error.message = overtakenText(namespace);
      if (error instanceof manifests.ApplyError) error.message = withProgress(error);
      throw error;
    } finally {
      stopListening();
      this.#screen.endProgress();
    }
    const registered = isRegistered ? "" : `Registered namespace ${namespace}.\n`;
    this.#screen.show(
      report,
      () => registered + reportText(report, namespace) + formatAdopted(shown),
    );
  }

  #show({ done, total }: ApplyProgress): void {
    const parts = this.#screen.isRewritable ? REWRITTEN : LINES;
    if (Math.floor((done * parts) / total) === Math.floor(((done - 1) * parts) / total)) return;
    const text = `Applied ${numberText(done)} of ${changesText(total)}`;
    if (this.#screen.isRewritable) this.#screen.progress(text);
    else if (!this.#screen.json && total >= MANY) this.#screen.notice(text);
  }
}

/** How often the line of progress is rewritten: at every hundredth of the changes. */
const REWRITTEN = 100;

/** How many lines of progress a log gets, if there are many changes. */
const LINES = 10;
const MANY = 100;

function changesText(count: number): string {
  return `${numberText(count)} change${count === 1 ? "" : "s"}`;
}

/** The progress of an apply, in words and numbers. */
function withProgress({ message, done, left }: ApplyError): string {
  const progress = `Applied ${numberText(done)} of ${changesText(done + left.length)}.`;
  return message.replace(/^\d+ of \d+ changes were made\./, progress);
}

function overtakenText(namespace: string): string {
  return (
    `Another apply to namespace ${namespace} started meanwhile, so this one has stopped. ` +
    "When the other one has ended, run limits plan, and apply again if anything differs."
  );
}

function reportText(
  { created, updated, deleted, unchanged }: ApplyReport,
  namespace: string,
): string {
  const kept = `${numberText(unchanged)} unchanged.\n`;
  if (created + updated + deleted === 0) return `Nothing to change in ${namespace}: ${kept}`;
  const done = `${numberText(created)} created, ${numberText(updated)} updated`;
  return `Applied to ${namespace}: ${done}, ${numberText(deleted)} deleted, ${kept}`;
}
