import { Option, type Command } from "commander";
import type { DeclaredLimits, Repository } from "zae-limiter";
import { Cancelled, UsageError } from "../../exit.ts";
import { jsonText } from "../../output/json.ts";
import type { Screen } from "../../output/screen.ts";
import { checkOutput, outputFile, writeOutput, type OutputFlags } from "../support/new-file.ts";
import type { Session } from "../support/session.ts";
import { addVerb } from "../support/verb.ts";

/** Adds `limits export`. */
export function addExportCommand(limits: Command, session: Session): void {
  addVerb(limits, {
    usage: "export",
    summary:
      "Writes everything that is stored in the namespace as a manifest, also what no manifest " +
      "has declared: limits, settings and entities.",
    examples: ["limits export > limits.yaml", "limits export --format json"],
  })
    .option("-o, --output <file>", "Write it to a file.")
    .addOption(
      new Option("--format <format>", "How it is written. By default, yaml.").choices(FORMATS),
    )
    .option("--force", "Overwrite the file.")
    .action(async (flags: ExportFlags, command: Command) => {
      const screen = session.screen(command);
      const format = chooseFormat(flags, screen);
      await checkOutput(flags);
      await session.inNamespace(command, "existing", async ({ repository }) => {
        const declared = await exportFrom(session, repository, screen);
        const text = await toText(repository.namespaceName, declared, format);
        await writeOutput(text, flags, { session, command });
      });
    });
}

const FORMATS = ["yaml", "json"] as const;

interface ExportFlags extends OutputFlags {
  readonly format?: (typeof FORMATS)[number];
}

/** The requested format; otherwise that of the file's name. */
function chooseFormat(flags: ExportFlags, { json }: Screen): (typeof FORMATS)[number] {
  const { format } = flags;
  const file = outputFile(flags);
  if (json && format === "yaml" && file === undefined)
    throw new UsageError("--json and --format yaml contradict each other. Pass one.");
  return format ?? (json || file?.endsWith(".json") === true ? "json" : "yaml");
}

async function exportFrom(
  { environment }: Session,
  repository: Repository,
  screen: Screen,
): Promise<DeclaredLimits> {
  const { exportLimits } = await import("zae-limiter/manifest");
  const stopping = new AbortController();
  const stopListening = environment.onInterrupt(() => stopping.abort());
  try {
    return await exportLimits(repository, {
      signal: stopping.signal,
      onProgress: ({ entities, levels }) =>
        screen.progress(`${entities} entities, ${levels} levels`),
    });
  } catch (error) {
    if (!stopping.signal.aborted) throw error;
    throw new Cancelled("Interrupted. Nothing was written.");
  } finally {
    stopListening();
    screen.endProgress();
  }
}

async function toText(
  namespace: string,
  declared: DeclaredLimits,
  format: (typeof FORMATS)[number],
): Promise<string> {
  const { buildManifest } = await import("zae-limiter/manifest");
  const manifest = buildManifest(namespace, declared);
  if (format === "json") return jsonText(manifest);
  const { manifestYaml } = await import("@zae-limiter/infra/manifest");
  return manifestYaml(manifest);
}
