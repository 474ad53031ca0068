import { expect, it } from "vitest";
import { LimitFold } from "./batch-decision.ts";

it("a batch needs the most that any acquire on the way asks of the start, whatever goes back after it", () => {
  const fold = new LimitFold();
  fold.take(7000);
  fold.settle(-6000);
  fold.take(2000);
  expect(fold).toMatchObject({
    netMilli: 3000,
    needMilli: 7000,
    riseMilli: 0,
    isCharged: true,
  });
});

it("an acquire that costs nothing needs the debt before it to be earned", () => {
  const fold = new LimitFold();
  fold.settle(4000);
  fold.take(0);
  expect(fold).toMatchObject({ netMilli: 4000, needMilli: 4000 });
});

it("a batch rises as far as gives lift the balance before something is charged, and no further", () => {
  const fold = new LimitFold();
  fold.settle(-5000);
  fold.settle(-2000);
  fold.take(1000);
  fold.settle(-9000);
  expect(fold).toMatchObject({
    netMilli: -15_000,
    needMilli: -6000,
    riseMilli: 7000,
    isCharged: true,
  });
});

it("a batch ends where its members, one after another, would, each cut off at the ceiling", () => {
  const fold = new LimitFold();
  fold.settle(-5000);
  fold.take(1000);
  expect(fold.after(8000, 10_000)).toEqual({ milli: 9000, wasFull: true });
  expect(fold.after(4000, 10_000)).toEqual({ milli: 8000, wasFull: false });
});
