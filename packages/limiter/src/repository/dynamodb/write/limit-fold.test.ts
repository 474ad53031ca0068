import { expect, it } from "vitest";
import { LimitFold } from "./batch-decision.ts";

it("needs the most that any acquire on the way asks of the start, whatever goes back after it", () => {
  const fold = new LimitFold();
  fold.take(7000);
  fold.settle(-6000);
  fold.take(2000);
  expect(fold).toMatchObject({ netMilli: 3000, needMilli: 7000 });
});

it("rises as far as gives lift the balance before something is charged, and no further", () => {
  const fold = new LimitFold();
  fold.settle(-5000);
  fold.take(1000);
  fold.settle(-2000);
  expect(fold).toMatchObject({ netMilli: -6000, needMilli: -4000, riseMilli: 5000 });
});

it("ends where its members, one after another, would, each cut off at the ceiling", () => {
  const fold = new LimitFold();
  fold.settle(-5000);
  fold.take(1000);
  expect(fold.after(8000, 10_000)).toEqual({ milli: 9000, wasFull: true });
  expect(fold.after(4000, 10_000)).toEqual({ milli: 8000, wasFull: false });
});
