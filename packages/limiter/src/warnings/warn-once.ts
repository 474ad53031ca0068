/*
 * Warnings that are emitted once per process, about mistakes that let requests through, count them
 * twice or reveal secrets without causing an error.
 */
import { emitWarning } from "../repository/warning.ts";

/** The codes of the warnings. */
export type MisuseCode =
  | "WARN_LIMITER_PROXY_NOT_TRUSTED"
  | "WARN_LIMITER_SECRET_AS_ID"
  | "WARN_LIMITER_LIMITED_TWICE"
  | "WARN_LIMITER_MADE_IN_HANDLER"
  | "WARN_LIMITER_SETTLE_FAILED"
  | "WARN_LIMITER_REQUEST_FAILED"
  | "WARN_LIMITER_METERED_TWICE"
  | "WARN_LIMITER_USAGE_UNREADABLE"
  | "WARN_LIMITER_BODY_UNREADABLE"
  | "WARN_LIMITER_METERING_FAILED"
  | "WARN_LIMITER_MIRROR_FAILED";

/** How often each mistake was made in this process, up to the warning. */
const SEEN_MEMO = new Map<string, number>();

/**
 * Emits a warning, unless this process has emitted it before. `about` distinguishes mistakes with
 * the same code: each of them is warned of once, so there must be few.
 */
export function warnOnce(code: MisuseCode, message: string, about = ""): void {
  warnAt(1, code, message, about);
}

/** Emits a warning when the mistake is made for the n-th time, and never again. */
export function warnAt(times: number, code: MisuseCode, message: string, about = ""): void {
  const key = `${code} ${about}`;
  const seen = (SEEN_MEMO.get(key) ?? 0) + 1;
  if (seen > times) return;
  SEEN_MEMO.set(key, seen);
  if (seen === times) emitWarning(`${message} This process does not warn again.`, { code });
}

/** Forgets all warnings, for tests. */
export function forgetWarnings(): void {
  SEEN_MEMO.clear();
}
