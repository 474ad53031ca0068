import { yamlDocument } from "@zae-limiter/infra/manifest";
import {
  ManifestError,
  readManifest,
  type Manifest,
  type ManifestProblem,
} from "zae-limiter/manifest";

/** The properties of a resource: those of every custom resource, and the text of a manifest. */
const KNOWN = new Set(["ServiceToken", "ServiceTimeout", "Manifest"]);

/** Reads the manifest of a resource. Throws `ManifestError` with everything that is wrong. */
export function readProperties(properties: unknown): Manifest {
  const given = isObject(properties) ? properties : {};
  const problems: ManifestProblem[] = Object.keys(given)
    .filter((name) => !KNOWN.has(name))
    .map((name) =>
      problem(name, "is not a property that is known.", "Write what it says in `Manifest`."),
    );
  const { Manifest: text } = given;
  try {
    if (typeof text === "string") {
      const manifest = readManifest([yamlDocument("Properties.Manifest", text)]);
      if (problems.length === 0) return manifest;
    } else problems.push(problem("Manifest", "must be the text of a manifest, YAML or JSON."));
  } catch (error) {
    if (!(error instanceof ManifestError)) throw error;
    problems.push(...error.problems);
  }
  throw new ManifestError(problems);
}

function problem(property: string, message: string, suggestion?: string): ManifestProblem {
  return {
    file: `Properties.${property}`,
    line: undefined,
    column: undefined,
    path: property,
    message,
    suggestion,
  };
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
