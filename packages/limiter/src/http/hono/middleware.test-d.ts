/* Our types beside Hono's own. Compiled by `tsc -b`; nothing here runs. */
import { Hono, type Context } from "hono";
import { createFactory } from "hono/factory";
import { expectTypeOf } from "vitest";
import type { RateLimiter } from "zae-limiter";
import { answerRefusals, limitRequests } from "zae-limiter/hono";
import { getLease } from "zae-limiter/http";

interface AppEnv {
  Variables: { readonly user: { readonly id: string } };
  Bindings: { readonly PLAN: string };
}
declare const limiter: RateLimiter;
const common = { limiter, resource: "chat", consume: { rpm: 1 } };

// With the environment of the application, everything that a function gets is typed.
const limit = limitRequests<AppEnv>({
  ...common,
  entity: (context) => {
    expectTypeOf(context).toEqualTypeOf<Context<AppEnv>>();
    return context.get("user").id;
  },
  resource: (context) => context.env.PLAN,
  settle: ({ request }) => ({ rpm: request.get("user").id.length }),
  respond: (refusal, context) => context.json({ retry: refusal.retryAfterSeconds }, 429),
});
const app = new Hono<AppEnv>();
app.use(limit);
app.use("/api/*", limit);

// Without, it fits every application, and routes keep the types of their own paths.
const plain = limitRequests({
  ...common,
  entity: (context) => context.req.header("authorization"),
});
const routes = new Hono<AppEnv>().get("/users/:id", plain, limit, (context) => {
  expectTypeOf(context.req.param("id")).toEqualTypeOf<string>();
  expectTypeOf(context.get("user").id).toEqualTypeOf<string>();
  getLease(context)?.settle({ rpm: 1 });
  return context.json({ id: context.req.param("id") });
});
app.route("/v1", routes);
createFactory<AppEnv>().createHandlers(plain, limit, (context) => context.text("ok"));

app.onError(answerRefusals);
app.onError((error, context) => answerRefusals(error, context));

// @ts-expect-error: no entity is named
limitRequests(common);
limitRequests({
  ...common,
  entity: () => "key-1",
  // @ts-expect-error: a response is needed
  respond: () => "Slow down",
});
