import { describe } from "vitest";
import type { ServerAdapter } from "../servers/server-adapter.ts";
import { endScenarios } from "./ends.ts";
import { severalScenarios } from "./several.ts";
import { verdictScenarios } from "./verdicts.ts";

/** The scenarios that every framework must pass, over real sockets. */
export function serverScenarios(adapter: ServerAdapter): void {
  describe(adapter.name, () => {
    verdictScenarios(adapter);
    endScenarios(adapter);
    severalScenarios(adapter);
  });
}
