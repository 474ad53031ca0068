import { ValidationError } from "../../core/errors.ts";
import { checkOptions, optionNames } from "../../core/options.ts";

/**
 * Which headers are sent. "ietf" is the newest draft that this release knows, today "ietf-11"; the
 * other names are pinned.
 */
export type HeaderStyle =
  | "ietf"
  | "ietf-11"
  | "draft-7"
  | "draft-6"
  | "legacy"
  | "openai"
  | "anthropic";

/** Which headers say what is left. */
export interface HeaderOptions {
  /** One style, or several. @default "ietf" */
  readonly style?: HeaderStyle | readonly HeaderStyle[];
  /** Whether the balances of parents are shown: they tell of other tenants. @default false */
  readonly parents?: boolean;
  /** The limits that "openai" and "anthropic" show. @default rpm, tpm, itpm and otpm */
  readonly names?: {
    /** @default "rpm" */
    readonly requests?: string;
    /** @default "tpm" */
    readonly tokens?: string;
    /** @default "itpm" */
    readonly inputTokens?: string;
    /** @default "otpm" */
    readonly outputTokens?: string;
  };
}

const NAMES = optionNames<HeaderOptions>({ style: true, parents: true, names: true });

/** Throws for options that are wrong. */
export function checkHeaderOptions(options: HeaderOptions): void {
  checkOptions(options, NAMES, "headers");
  if (options.parents !== undefined && typeof options.parents !== "boolean")
    throw new ValidationError("parents", options.parents, "must be true or false");
}
