import { IncompatibleSchemaError, VersionMismatchError } from "../../../core/errors.ts";
import { VERSION } from "../../../core/version.ts";
import type { VersionRecord } from "../../repository.ts";
import { judgeCompatibility } from "./compatibility.ts";

/** Stands for the record of a table that has namespaces and no record: it may hold anything. */
export const LOST_VERSION: VersionRecord = {
  schemaVersion: "0.0.0",
  lambdaVersion: undefined,
  clientMinVersion: "0.0.0",
  updatedAt: new Date(0),
  updatedBy: undefined,
};

/**
 * Throws when a table has items that this library must not touch: of a newer schema, of an older
 * one that was not upgraded, or such that require a newer client. A table without a version record
 * is new.
 */
export function assertCompatible(record: VersionRecord | undefined): void {
  if (record === undefined) return;
  const versions = { ...record, clientVersion: VERSION };
  const { state, message } = judgeCompatibility(versions);
  if (state === "compatible") return;
  if (state === "client too old")
    throw new VersionMismatchError(message, { ...versions, canAutoUpdate: false });
  throw new IncompatibleSchemaError(message, versions);
}
