import { Limit } from "zae-limiter";

/** The one bucket that all processes call for; its supply is a fraction of the demand. */
export const ENTITY = "hot";
export const RESOURCE = "r";
export const LIMIT = Limit.perSecond("rps", 200, { burst: 500 });

/** Entities whose calls cascade to it, for processes that share requests. */
export const CHILDREN = ["a", "b", "c", "d", "e", "f", "g", "h"];

/** Attempts at one write; more than this many faults in a row leave its outcome open. */
export const MAX_ATTEMPTS = 3;
