import { ValidationError } from "zae-limiter";

/** CloudFormation allows 50, and six are our own. */
const MAX_TAGS = 44;

/** Throws for tags that AWS would refuse. */
export function checkTags(tags: unknown): void {
  if (typeof tags !== "object" || tags === null || Array.isArray(tags))
    throw new ValidationError("tags", tags, 'must be an object, such as { team: "search" }');
  const entries = Object.entries(tags as Record<string, unknown>);
  if (entries.length > MAX_TAGS)
    throw new ValidationError(
      "tags",
      entries.length,
      `must be at most ${MAX_TAGS}: AWS allows 50, and 6 are zae-limiter's own`,
    );
  for (const [key, value] of entries) {
    const field = `tags.${key}`;
    if (key.length < 1 || key.length > 128)
      throw new ValidationError("tags", key, "must have keys of 1 to 128 characters");
    if (/^aws:/i.test(key))
      throw new ValidationError(field, key, "must not begin with aws:, which AWS reserves");
    if (typeof value !== "string" || value.length > 256)
      throw new ValidationError(field, value, "must be a text of at most 256 characters");
  }
}
