/** Does something for each item, for at most `bound` of them at a time. */
export async function eachWithin<Item>(
  bound: number,
  items: readonly Item[],
  work: (item: Item) => Promise<void>,
): Promise<void> {
  const rest = items.values();
  const workInTurn = async (): Promise<void> => {
    for (const item of rest) await work(item);
  };
  await Promise.all(Array.from({ length: Math.min(bound, items.length) }, workInTurn));
}
