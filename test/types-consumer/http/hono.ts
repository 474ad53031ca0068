// A server with Hono. Its variables, parameters and paths must not be lost behind a limit.
import { Hono, type Context } from "hono";
import type { ExtractSchema } from "hono/types";
import type { RateLimiter } from "zae-limiter";
import { answerRefusals, limitRequests } from "zae-limiter/hono";
import { hashedId } from "zae-limiter/http";
import { typeOf } from "./same.ts";

interface AppEnv {
  readonly Variables: { readonly userId: string };
  readonly Bindings: { readonly REGION: string };
}

/** A server whose routes are limited. */
export function server(limiter: RateLimiter): Hono<AppEnv> {
  const app = new Hono<AppEnv>();
  const limit = limitRequests<AppEnv>({
    limiter,
    entity: (context) => {
      typeOf(context).is<Context<AppEnv>>(true);
      typeOf(context.get("userId")).is<string>(true);
      typeOf(context.env.REGION).is<string>(true);
      return context.get("userId");
    },
    resource: "web",
    consume: { rpm: 1 },
    settle: ({ request, status }) => {
      typeOf(request.var.userId).is<string>(true);
      return status >= 500 ? "give-back" : undefined;
    },
  });
  app.use(limit);
  app.use("/v1/*", limit);
  app.get("/users/:id", limit, (context) => {
    typeOf(context.req.param("id")).is<string>(true);
    typeOf(context.get("userId")).is<string>(true);
    typeOf(context.env.REGION).is<string>(true);
    return context.text(context.req.param("id"));
  });
  // The path and the answer of a route stay in its type, for Hono's own client.
  const route = new Hono().get(
    "/status",
    limitRequests({
      limiter,
      entity: (context) => hashedId("key", context.req.header("authorization") ?? ""),
      resource: "web",
      consume: { rpm: 1 },
    }),
    (context) => context.json({ up: true }),
  );
  type Answers = ExtractSchema<typeof route>["/status"]["$get"]["output"];
  typeOf({} as Answers).is<{ up: true }>(true);
  app.onError(answerRefusals);
  return app;
}
