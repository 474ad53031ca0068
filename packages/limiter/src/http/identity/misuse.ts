/*
 * What is warned of once a process: mistakes that let requests through, count them twice or tell
 * secrets, and that no error would show.
 */
import { emitWarning } from "../../repository/warning.ts";

/** The codes of the warnings. */
export type MisuseCode =
  | "WARN_LIMITER_PROXY_NOT_TRUSTED"
  | "WARN_LIMITER_SECRET_AS_ID"
  | "WARN_LIMITER_LIMITED_TWICE"
  | "WARN_LIMITER_MADE_IN_HANDLER"
  | "WARN_LIMITER_SETTLE_FAILED";

/** The codes that were warned of. */
const WARNED_MEMO = new Set<MisuseCode>();

/** Emits a warning, unless this process has seen it. */
export function warnOnce(code: MisuseCode, message: string): void {
  if (WARNED_MEMO.has(code)) return;
  WARNED_MEMO.add(code);
  emitWarning(`${message} This process does not warn again.`, { code });
}

/** Forgets what was warned of, for tests. */
export function forgetWarnings(): void {
  WARNED_MEMO.clear();
}
