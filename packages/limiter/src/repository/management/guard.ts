import { ValidationError } from "../../core/errors.ts";
import type { By } from "../repository.ts";
import type { Guard } from "../store.ts";

/** The condition of a write, checked. */
export function buildGuard({ ifRevision }: By): Guard {
  if (ifRevision !== undefined && !isRevision(ifRevision))
    throw new ValidationError("ifRevision", ifRevision, "must be a whole number, 0 or more");
  return { ifRevision };
}

/** Whether something can be the revision of a state of declared limits. */
export function isRevision(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
