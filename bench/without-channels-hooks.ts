/*
 * Loads a second copy of the library, for `import("zae-limiter?without")`: the same code without
 * the check whether its channels have subscribers.
 */
import type { LoadHook, ResolveHook } from "node:module";

const MARK = "?without";

/** What is asked, by file of the built library, and what is loaded instead. */
const QUESTIONS: readonly (readonly [file: string, question: string, instead: string])[] = [
  [
    "/limiter/rate-limiter.js",
    "const isHeard = ACQUIRE.hasSubscribers || END.hasSubscribers;",
    "const isHeard = false;",
  ],
  ["/limiter/lease.js", " || this.#taken.trace !== undefined", ""],
];

/** What a marked file imports is marked too. */
export const resolve: ResolveHook = async (specifier, context, nextResolve) => {
  const isMarked = specifier.endsWith(MARK) || context.parentURL?.endsWith(MARK) === true;
  const resolved = await nextResolve(specifier.replace(MARK, ""), context);
  return isMarked && resolved.url.startsWith("file:")
    ? { ...resolved, url: resolved.url + MARK }
    : resolved;
};

/** Takes the questions out, and fails if one is no longer there. */
export const load: LoadHook = async (url, context, nextLoad) => {
  const loaded = await nextLoad(url, context);
  const found = QUESTIONS.find(([file]) => url.endsWith(`/dist${file}${MARK}`));
  if (found === undefined) return loaded;
  const [file, question, instead] = found;
  const source = (loaded.source as Buffer).toString();
  if (!source.includes(question)) throw new Error(`${file} has changed: ${question}`);
  return { ...loaded, source: source.replaceAll(question, instead) };
};
