import { afterEach, expect, it, vi } from "vitest";
import { emitWarning } from "./warning.ts";

afterEach(() => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

it("warns as a process does, so that listeners and --no-warnings work", () => {
  const warned = vi.spyOn(process, "emitWarning").mockReturnValue();
  emitWarning("Look here.", { code: "WARN_LIMITER_TEST" });
  expect(warned.mock.calls).toEqual([["Look here.", { code: "WARN_LIMITER_TEST" }]]);
});

it.each([
  ["without a process", undefined],
  ["with a bundler's imitation of one", { env: {} }],
])("warns on the console %s", (_, imitation) => {
  vi.stubGlobal("process", imitation);
  const warned = vi.spyOn(console, "warn").mockReturnValue();
  emitWarning("Look here.", { code: "WARN_LIMITER_TEST" });
  expect(warned.mock.calls).toEqual([["WARN_LIMITER_TEST: Look here."]]);
});
