import type { LimitStatus } from "../../core/bucket/decision.ts";
import { ValidationError } from "../../core/errors.ts";
import { anthropic } from "./anthropic.ts";
import { draft6 } from "./draft-6.ts";
import { draft7 } from "./draft-7.ts";
import { ietf11 } from "./ietf-11.ts";
import { legacy } from "./legacy.ts";
import { openai } from "./openai.ts";
import {
  checkHeaderOptions,
  NAMES_WITH_TIME,
  resolveNames,
  type HeaderFields,
  type HeaderOptions,
  type HeaderStyle,
} from "./options.ts";
import { selectShownLimits, type ShownLimit } from "./shown-limit.ts";
import { integer } from "./structured-fields.ts";

/**
 * The headers that tell a client what is left, by name. If some limit refused the call they include
 * `Retry-After`, or `x-should-retry: false` if the call can never fit.
 *
 * The first status must be of the call's own entity and resource. Statuses of another entity are
 * its parent's, which are hidden unless `parents` is set or they refused the call. Without statuses
 * there are no headers.
 *
 * @example
 * const headers = rateLimitHeaders(refusal.statuses, { style: "ietf", nowMs: Date.now() });
 * // RateLimit-Policy: "rpm";q=60;w=60
 * // RateLimit: "rpm";r=0;t=12
 * // Retry-After: 12
 */
export function rateLimitHeaders(
  statuses: readonly LimitStatus[],
  options: HeaderOptions & {
    /** The current time, in milliseconds since 1970: some styles say when a limit is full. */
    readonly nowMs: number;
  },
): Readonly<Record<string, string>> {
  check(statuses, options);
  return toHeaders(statuses, options, options.nowMs);
}

/**
 * The same with checked options. A middleware checks its options when it is made: checking them for
 * each request would take a fifth of its time.
 */
export function toHeaders(
  statuses: readonly LimitStatus[],
  options: HeaderOptions,
  nowMs: number,
): HeaderFields {
  const shown = selectShownLimits(statuses, options.parents ?? false);
  if (shown.length === 0) return {};
  const { style = "ietf" } = options;
  const fields =
    typeof style === "string"
      ? WRITERS[style](shown, options, nowMs)
      : // The first style that writes a field has it: drafts disagree about RateLimit-Policy.
        (Object.assign(
          {},
          ...style.toReversed().map((each) => WRITERS[each](shown, options, nowMs)),
        ) as HeaderFields);
  const retry = toRetryFields(shown);
  // Spreading both would take 0.6 µs more.
  return retry === undefined ? fields : Object.assign({}, fields, retry);
}

type TimedOptions = Parameters<typeof rateLimitHeaders>[1];

/** What writes each style. */
const WRITERS: Readonly<
  Record<
    HeaderStyle,
    (shown: readonly ShownLimit[], options: HeaderOptions, nowMs: number) => HeaderFields
  >
> = {
  ietf: ietf11,
  "ietf-11": ietf11,
  "draft-7": draft7,
  "draft-6": draft6,
  legacy: (shown, _options, nowMs) => legacy(shown, nowMs),
  openai: (shown, options) => openai(shown, resolveNames(options)),
  anthropic: (shown, options, nowMs) => anthropic(shown, resolveNames(options), nowMs),
};

const NEVER_FITS: HeaderFields = { "x-should-retry": "false" };

/** The longest wait of the limits that refused, so no `t` of theirs is later. */
function toRetryFields(shown: readonly ShownLimit[]): HeaderFields | undefined {
  let longest: number | undefined;
  for (const { exceeded, waitSeconds } of shown)
    if (exceeded) longest = Math.max(longest ?? 0, waitSeconds);
  if (longest === undefined) return undefined;
  return Number.isFinite(longest) ? { "Retry-After": integer(Math.ceil(longest)) } : NEVER_FITS;
}

function check(statuses: readonly LimitStatus[], options: TimedOptions): void {
  checkHeaderOptions(options, NAMES_WITH_TIME);
  if (!Number.isFinite(options.nowMs))
    throw new ValidationError("nowMs", options.nowMs, "must be a time in milliseconds");
  if (!Array.isArray(statuses))
    throw new ValidationError("statuses", statuses, "must be an array of statuses");
}
