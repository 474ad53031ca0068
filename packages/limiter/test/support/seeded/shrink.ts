/**
 * Proposes simpler versions of something that fails. After each proposal it learns whether that one
 * still fails, and continues from there.
 */
export type Proposals<T> = Generator<T, void, boolean>;

/** Returns the simplest version found that still fails, after at most `mostReplays` attempts. */
export async function shrink<T>(
  failing: T,
  proposals: Proposals<T>,
  {
    stillFails,
    mostReplays,
  }: { readonly stillFails: (simpler: T) => Promise<boolean>; readonly mostReplays: number },
): Promise<T> {
  let simplest = failing;
  let next = proposals.next();
  for (let replays = 0; next.done !== true && replays < mostReplays; replays += 1) {
    const proposed = next.value;
    const fails = await stillFails(proposed);
    if (fails) simplest = proposed;
    next = proposals.next(fails);
  }
  return simplest;
}
