import { createHash } from "node:crypto";
import { isResourceName } from "../core/identifiers.ts";

/**
 * Makes a resource name of any model name: the name itself if it is valid, otherwise its valid
 * characters and a hash. Two models never share a resource.
 * @example
 * modelResource("gpt-5"); // "gpt-5"
 * modelResource("@cf/meta/llama-3"); // "cf/meta/llama-3" and a hash
 */
export function modelResource(model: string): string {
  if (isResourceName(model)) return model;
  const hash = createHash("sha256").update(model).digest("hex").slice(0, 16);
  return `m:${hash}`; // to be built
}
