import { ValidationError } from "../../core/errors.ts";
import { limitName } from "../../core/identifiers.ts";
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
  /** One style, or several, but only one of the IETF's drafts. @default "ietf" */
  readonly style?: HeaderStyle | readonly HeaderStyle[];
  /**
   * Whether the balances of parents are shown. They reveal the use of other tenants. @default false
   */
  readonly parents?: boolean;
  /** The limits that "openai" and "anthropic" show. @default rpm, tpm, itpm and otpm */
  readonly names?: {
    /** The limit of requests. @default "rpm" */
    readonly requests?: string;
    /** The limit of tokens, of any kind. @default "tpm" */
    readonly tokens?: string;
    /** The limit of input tokens. @default "itpm" */
    readonly inputTokens?: string;
    /** The limit of output tokens. @default "otpm" */
    readonly outputTokens?: string;
  };
}

/** The limits that "openai" and "anthropic" show. */
export type LimitNames = Required<NonNullable<HeaderOptions["names"]>>;

/** Header fields by name. */
export type HeaderFields = Readonly<Record<string, string>>;

const DEFAULT_NAMES: LimitNames = {
  requests: "rpm",
  tokens: "tpm",
  inputTokens: "itpm",
  outputTokens: "otpm",
};

/** The limits that "openai" and "anthropic" show. */
export function resolveNames({ names }: HeaderOptions): LimitNames {
  return names === undefined ? DEFAULT_NAMES : { ...DEFAULT_NAMES, ...pickDefined(names) };
}

/** Which draft of the IETF each style writes into the field `RateLimit`, if any. */
const STYLES: Readonly<Record<HeaderStyle, string | undefined>> = {
  ietf: "ietf-11",
  "ietf-11": "ietf-11",
  "draft-7": "draft-7",
  "draft-6": undefined,
  legacy: undefined,
  openai: undefined,
  anthropic: undefined,
};

const NAMES = optionNames<HeaderOptions>({ style: true, parents: true, names: true });

/** The options of a function that also gets the time. */
export const NAMES_WITH_TIME: ReadonlySet<string> = new Set([...NAMES, "nowMs"]);

const LIMIT_NAMES = optionNames<LimitNames>({
  requests: true,
  tokens: true,
  inputTokens: true,
  outputTokens: true,
});

/** Throws for options that are wrong. `known` are the names that options may have. */
export function checkHeaderOptions(
  options: HeaderOptions,
  known: ReadonlySet<string> = NAMES,
): void {
  if (typeof options === "string")
    throw new ValidationError("headers", options, 'must be an object, such as { style: "legacy" }');
  checkOptions(options, known, "headers");
  const { style, parents, names } = options;
  if (style !== undefined) checkStyle(style);
  if (parents !== undefined && typeof parents !== "boolean")
    throw new ValidationError("parents", parents, "must be true or false");
  if (names !== undefined) checkLimitNames(names);
}

function checkStyle(style: unknown): void {
  if (!Array.isArray(style)) return mustBeStyle(style);
  if (style.length === 0)
    throw new ValidationError(
      "style",
      style,
      "must name at least one style; for no headers, set headers to false",
    );
  let draft: string | undefined;
  for (const each of style as readonly unknown[]) {
    mustBeStyle(each);
    const written = STYLES[each];
    if (written !== undefined && draft !== undefined && written !== draft)
      throw new ValidationError(
        "style",
        each,
        `writes the header RateLimit in another way than ${draft}; choose one of them`,
      );
    draft ??= written;
  }
}

function mustBeStyle(style: unknown): asserts style is HeaderStyle {
  if (typeof style !== "string" || !Object.hasOwn(STYLES, style))
    throw new ValidationError("style", style, `must be one of ${Object.keys(STYLES).join(", ")}`);
}

function checkLimitNames(names: NonNullable<HeaderOptions["names"]>): void {
  checkOptions(names, LIMIT_NAMES, "names");
  for (const [kind, name] of Object.entries(names))
    if (name !== undefined) limitName(name, `names.${kind}`);
}

function pickDefined<T extends object>(values: T): Partial<T> {
  return Object.fromEntries(
    Object.entries(values).filter(([, value]) => value !== undefined),
  ) as Partial<T>;
}
