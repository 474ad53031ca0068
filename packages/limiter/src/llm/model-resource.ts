import { createHash } from "node:crypto";
import { isResourceName } from "../core/identifiers.ts";

/** Hex digits of a hash: 64 bits. Among a million names, two collide in one of 37 million cases. */
const HASH_DIGITS = 16;

/** Characters of a name that are kept before a dash and the hash: 64 in all. */
const MAX_BEGINNING = 64 - 1 - HASH_DIGITS;

/**
 * Turns any model name into a resource name: the name itself if it is valid, otherwise its
 * beginning, with dashes for invalid characters, and a hash of the whole name. Two models do not
 * share a resource, unless a model is named after the hash of another.
 * @example
 * modelResource("gpt-5"); // "gpt-5"
 * modelResource("@cf/meta/llama-3"); // "cf/meta/llama-3-" and a hash
 */
export function modelResource(model: string): string {
  if (isResourceName(model)) return model;
  // Not UTF-8, which encodes all lone surrogates alike.
  const hash = createHash("sha256").update(model, "utf16le").digest("hex").slice(0, HASH_DIGITS);
  return `${toReadablePrefix(model)}-${hash}`;
}

/** Builds the part that people recognize, which begins with a letter. */
function toReadablePrefix(model: string): string {
  const valid = model
    .slice(0, MAX_BEGINNING)
    .replaceAll(/[^\w.\-/:]+/g, "-")
    .replaceAll(/^[^A-Za-z0-9]+|[^A-Za-z0-9]+$/g, "");
  if (/^[A-Za-z]/.test(valid)) return valid;
  return valid === "" ? "model" : `model-${valid}`.slice(0, MAX_BEGINNING);
}
