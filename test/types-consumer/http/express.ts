// A server with Express, compiled against the types of Express 5 here, and against those of
// Express 4 by test/package/declarations.test.ts. What a handler knows of its request must not be
// lost behind a limit.
import express, { type Express, type Request, type RequestHandler } from "express";
import type { Lease, RateLimiter, RateLimitExceeded } from "zae-limiter";
import { answerRefusals, limitRequests } from "zae-limiter/express";
import { clientAddress, giveBackFailures, hashedId, getLease } from "zae-limiter/http";
import { typeOf } from "./same.ts";

/** A server whose routes are limited. */
export function server(limiter: RateLimiter): Express {
  const app = express();
  const limit = limitRequests({
    limiter,
    entity: (request) => {
      typeOf(request).is<Request>(true);
      typeOf(request.get("authorization")).is<string | undefined>(true);
      return hashedId("key", request.get("authorization") ?? "");
    },
    resource: (request) => request.path.slice(1),
    consume: async () => ({ rpm: 1, tpm: 500 }),
    settle: ({ request, status, completed }, lease) => {
      typeOf(request.originalUrl).is<string>(true);
      typeOf(status).is<number>(true);
      typeOf(lease).is<Lease>(true);
      return completed ? undefined : "give-back";
    },
    respond: (refusal, request, response, next) => {
      typeOf(refusal).is<RateLimitExceeded>(true);
      if (request.xhr) response.status(429).json(refusal);
      else next(refusal);
    },
    headers: { style: ["ietf", "openai"] },
  });
  app.use(limit);
  app.use("/v1", limit, express.json());
  app.get("/users/:id", limit, (request, response) => {
    typeOf(request.params).is<{ id: string }>(true);
    typeOf(request.get("accept")).is<string | undefined>(true);
    typeOf(getLease(request)).is<Lease | undefined>(true);
    response.send(request.params.id);
  });
  app.post("/users/:id/files/:file", [limit, limit], (request: Request<{ id: string }>) => {
    typeOf(request.params.id).is<string>(true);
  });
  app.post<"/typed/:id", { id: string }, Answer, Question>(
    "/typed/:id",
    limit,
    (request, response) => {
      typeOf(request.body).is<Question>(true);
      response.json({ answer: request.body.question });
    },
  );
  app.route("/users/:id").delete(limit, (request) => {
    typeOf(request.params).is<{ id: string }>(true);
  });
  const handler: RequestHandler = limit;
  express.Router().use(handler, limit);
  app.use(
    limitRequests({
      limiter,
      entity: (request) => clientAddress(request, { trustedProxies: 1 }),
      resource: "web",
      consume: { rpm: 1 },
      settle: giveBackFailures,
      headers: false,
    }),
  );
  app.use(answerRefusals);
  return app;
}

interface Question {
  readonly question: string;
}

interface Answer {
  readonly answer: string;
}
