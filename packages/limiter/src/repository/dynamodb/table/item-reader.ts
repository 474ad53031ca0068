import type { AttributeMap } from "../transport/attribute-values.ts";
import { batchGet, type ItemKey } from "./batch.ts";
import type { Connection } from "./connection.ts";

interface Wanted {
  readonly key: ItemKey;
  readonly resolve: (item: AttributeMap | undefined) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Reads items by key, consistently. Keys that are requested within one turn of the microtask queue
 * are read in one batch: limits, entity, bucket and namespace of a call that this process knows
 * nothing about cost one request.
 */
export class ItemReader {
  readonly #connection: Connection;
  #wanted: Wanted[] = [];

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  get(key: ItemKey): Promise<AttributeMap | undefined> {
    return new Promise((resolve, reject) => {
      if (this.#wanted.push({ key, resolve, reject }) === 1)
        queueMicrotask(() => void this.#read());
    });
  }

  async #read(): Promise<void> {
    const wanted = this.#wanted;
    this.#wanted = [];
    try {
      const items = await batchGet(
        this.#connection,
        wanted.map(({ key }) => key),
      );
      wanted.forEach(({ resolve }, index) => resolve(items[index]));
    } catch (error) {
      for (const { reject } of wanted) reject(error);
    }
  }
}
