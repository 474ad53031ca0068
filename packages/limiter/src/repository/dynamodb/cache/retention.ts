import { DEFAULT_RETENTION_DAYS } from "../../../core/usage.ts";
import type { SystemSettings } from "../../store.ts";
import type { Expiring } from "./expiring.ts";

/** For how many days records are kept. */
export interface RetentionDays {
  readonly audit: number;
  readonly usage: number;
}

/** The retention of each namespace by its id, remembered: every event that is written needs it. */
export type Retention = Expiring<RetentionDays>;

/** The retention that is stored, or the default where nothing is. */
export function resolveRetention(
  settings: SystemSettings | undefined,
  usageDays: number = DEFAULT_RETENTION_DAYS,
): RetentionDays {
  return {
    audit: settings?.auditRetentionDays ?? DEFAULT_RETENTION_DAYS,
    usage: settings?.usageRetentionDays ?? usageDays,
  };
}
