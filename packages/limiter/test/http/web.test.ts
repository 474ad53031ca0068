import { serverScenarios } from "./scenarios/scenarios.ts";
import { fastifyServer } from "./servers/fastify.ts";
import { honoBodyServer, honoServer, webHandler } from "./servers/web.ts";

for (const adapter of [webHandler, honoServer, honoBodyServer, fastifyServer])
  serverScenarios(adapter);
