import { rawSocketScenarios } from "./scenarios/raw-sockets.ts";
import { express5Server } from "./servers/express.ts";
import { fastifyServer } from "./servers/fastify.ts";
import { nodeListener } from "./servers/listener.ts";
import { honoServer, nodeHandler } from "./servers/web.ts";

for (const adapter of [nodeListener, express5Server, fastifyServer, honoServer, nodeHandler])
  rawSocketScenarios(adapter);
