/* One test for each cell of a client. The cells are played together before. */
import { beforeAll, describe, expect, it } from "vitest";
import type { Seen } from "./cells.ts";
import type { Client } from "./client.ts";
import { computeExpected } from "./expected.ts";
import { listCells } from "./play.ts";

/** Enough for all cells of a client on a busy machine. */
const TIMEOUT_MS = 120_000;

export function describeMatrix(client: Client, played: () => Promise<readonly Seen[]>): void {
  describe(client.name, () => {
    let seen: readonly Seen[];
    beforeAll(async () => {
      seen = await played();
    }, TIMEOUT_MS);

    it.each(
      listCells(client).map((cell, index) => [cell.kind, cell.end, cell.store, index] as const),
    )("%s, %s, %s", (kind, end, store, index) => {
      const { tapped, provided, ...found } = seen[index]!;
      const expected = computeExpected(client, { kind, end, store }, seen[index]!);
      expect({ ...found, tapped, provided }).toEqual({ ...expected, tapped, provided });
    });
  });
}
