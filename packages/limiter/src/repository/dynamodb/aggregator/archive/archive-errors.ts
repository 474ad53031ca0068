import { InfrastructureError } from "../../../../core/errors.ts";

/** The archive has no room left. `place` is a folder or the address of a bucket. */
export function buildArchiveFullError(place: string, cause: unknown): InfrastructureError {
  return new InfrastructureError(
    "ERR_LIMITER_ARCHIVE_FULL",
    `The archive ${place} is full: make room within 24 hours, while the stream still holds the events that could not be stored.`,
    { cause },
  );
}

/** The archive could not store an object, for any other reason. */
export function buildArchiveUnavailableError(place: string, cause: unknown): InfrastructureError {
  const reason = cause instanceof Error ? `${cause.name}: ${cause.message}` : String(cause);
  return new InfrastructureError(
    "ERR_LIMITER_ARCHIVE_UNAVAILABLE",
    `The archive ${place} could not store an object (${firstLine(reason)}): its events stay in the stream and are delivered again, for up to 24 hours.`,
    { cause },
  );
}

/** Messages of servers may be whole pages. */
const MAX_REASON_LENGTH = 300;

function firstLine(text: string): string {
  return text.split("\n", 1)[0]!.slice(0, MAX_REASON_LENGTH);
}
