import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { InfrastructureNotFoundError } from "zae-limiter";

/** The code of a function as Lambda takes it. */
export interface LambdaPackage {
  readonly name: "aggregator" | "provisioner";
  /** The zip file. */
  readonly content: Uint8Array;
  /** The SHA-256 of the zip file in hexadecimal: the same code has the same one. */
  readonly sha256: string;
}

/**
 * The code of a function, as it lies in this package.
 *
 * @example const { content, sha256 } = await lambdaPackage("aggregator");
 */
export async function lambdaPackage(name: LambdaPackage["name"]): Promise<LambdaPackage> {
  // From the sources and from what is built of them, it is two folders up.
  const file = new URL(`../../dist/lambda/${name}.zip`, import.meta.url);
  const content = await readFile(file).catch((error: unknown) => {
    throw new InfrastructureNotFoundError(
      `The code of the ${name} is missing from @zae-limiter/infra: install the package again, or run npm run build in a clone.`,
      { cause: error },
    );
  });
  return { name, content, sha256: createHash("sha256").update(content).digest("hex") };
}

/** The key under which code is stored; the same code has the same one. */
export function codeKey({ name, sha256 }: LambdaPackage): string {
  return `zae-limiter/${sha256}/${name}.zip`;
}
