import * as fc from "fast-check";
import { expect, it } from "vitest";
import { WaitingQueue, type Place } from "./waiting-queue.ts";

it("keeps the order of arrival when calls leave from any place", () => {
  fc.assert(
    fc.property(fc.array(fc.nat()), (steps) => {
      const queue = new WaitingQueue<number>("key");
      let places: Place<number>[] = [];
      for (const [index, step] of steps.entries()) {
        const leaving = step % 3 === 0 ? places[step % (places.length || 1)] : undefined;
        if (leaving === undefined) places.push(queue.join(index));
        else {
          queue.leave(leaving);
          places = places.filter((place) => place !== leaving);
        }
        expect([...queue]).toEqual(places.map(({ member }) => member));
        expect(queue.first).toBe(places[0]?.member);
        expect(places.map(({ ahead }) => ahead)).toEqual(
          [undefined, ...places.slice(0, -1)].slice(0, places.length),
        );
      }
    }),
  );
});
