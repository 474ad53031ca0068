import { serverScenarios } from "./scenarios/scenarios.ts";
import { express4Server, express5Server } from "./servers/express.ts";
import { fastifyServer } from "./servers/fastify.ts";
import { nodeListener } from "./servers/listener.ts";

for (const adapter of [nodeListener, express5Server, express4Server, fastifyServer])
  serverScenarios(adapter);
