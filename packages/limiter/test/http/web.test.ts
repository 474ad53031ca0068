import { describe } from "vitest";
import { endScenarios } from "./scenarios/ends.ts";
import { serverScenarios } from "./scenarios/scenarios.ts";
import { honoBodyServer, honoServer, webHandler } from "./servers/web.ts";

for (const adapter of [webHandler, honoServer]) serverScenarios(adapter);

// The verdicts of this one are those of Hono on Node.
describe(honoBodyServer.name, () => endScenarios(honoBodyServer));
