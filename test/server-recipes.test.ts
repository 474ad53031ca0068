/*
 * Runs the recipes that are servers, as they were built: each in a process of its own, over real
 * sockets, with the real frameworks. Next.js is the exception; see `nextHost`.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startGateway, untilRefused, type Gateway } from "./support/gateway-process.ts";
import { startProvider, type Provider } from "../examples/local-provider/provider.ts";
import { ANSWER } from "../examples/local-provider/wishes.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
/** Where the server for the route of Next.js is made; within the project, so it finds packages. */
const WORKSHOP = `${root}.cache/server-recipes`;
const QUESTION = "What is a token bucket?";

let provider: Provider;
let folder: string;
let server: Gateway;

beforeAll(async () => {
  provider = await startProvider();
});
afterAll(() => provider.stop());

describe.each(["express-gateway", "hono-gateway"])("%s", (name) => {
  runs(() => getProgram(name));

  it("answers until the limit is reached, then says when to retry", async () => {
    const first = await server.ask("key-ann", QUESTION);
    expect(first.status).toBe(200);
    expect(await first.text()).toContain(ANSWER);

    const refused = await untilRefused(server);
    expect(refused.status).toBe(429);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(refused.headers.get("content-type")).toBe("application/problem+json");
    const body = (await refused.json()) as { readonly "violated-policies": readonly string[] };
    expect(body["violated-policies"]).toEqual(["rpm"]);
    expect((await server.ask("key-bob", "What is a lease?")).status).toBe(200);
  });

  it("refuses a request without a question", async () => {
    expect((await server.ask("key-ann", "")).status).toBe(400);
  });

  it("sends no time to retry for a call that can never fit", async () => {
    const refused = await server.ask("key-bob", "long ".repeat(17_000));
    expect(refused.status).toBe(429);
    expect(refused.headers.has("retry-after")).toBe(false);
    expect(refused.headers.get("x-should-retry")).toBe("false");
  });

  it("gives everything back when the provider refuses the call", async () => {
    for (let calls = 0; calls < 40; calls += 1) {
      const response = await server.ask("key-bob", "Answer badly.");
      expect([400, 502]).toContain(response.status); // Express passes the provider's status on
      await response.text();
    }
  });
});

describe("express-gateway", () => {
  runs(() => getProgram("express-gateway"));

  it("charges the count of OpenAI, and says what is left as OpenAI does", async () => {
    for (let calls = 0; calls < 5; calls += 1) {
      const response = await server.ask("key-ann", QUESTION);
      expect(await response.text()).toContain(ANSWER);
      // 206 were taken for this call, and 16 settled for each before; and a little is earned.
      const left = Number(response.headers.get("x-ratelimit-remaining-tokens"));
      expect(left).toBeGreaterThanOrEqual(20_000 - 206 - 16 * calls);
    }
  });
});

describe("hono-gateway", () => {
  runs(() => getProgram("hono-gateway"));

  it("says what is left of the key, not of its team, and settles the provider's count", async () => {
    const response = await server.ask("key-ann", QUESTION);
    expect(response.headers.get("ratelimit-policy")).toBe('"rpm";q=20;w=60, "tpm";q=20000;w=60');
    await response.text();
    expect(await server.nextLine()).toBe("key-ann: 200, 16 tokens");
  });

  it("knows its keys", async () => {
    expect((await server.ask("key-eve", "What is a lease?")).status).toBe(401);
  });

  it("stops the provider when the client hangs up, and settles what was sent", async () => {
    const hungUp = provider.nextHangUp();
    const client = new AbortController();
    const response = await server.ask("key-ann", "Write slowly.", client.signal);
    const reader = response.body!.getReader();
    let seen = "";
    while (!seen.endsWith("holds ")) seen += new TextDecoder().decode((await reader.read()).value);
    client.abort();
    expect(await server.nextLine()).toBe("key-ann: 200, 8 tokens");
    await hungUp;
  });
});

describe("trpc", () => {
  runs(() => getProgram("trpc"));

  it("refuses the fourth call of a key, and says when to retry", async () => {
    const statuses = await computeStatuses(3, "/ask", `"${QUESTION}"`, "key-refused");
    expect(statuses).toEqual([200, 200, 200]);
    const refused = await post("/ask", `"${QUESTION}"`, "key-refused");
    expect(refused.status).toBe(429);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(28_000);
    const { error } = (await refused.json()) as { readonly error: { readonly message: string } };
    expect(error.message).not.toMatch(/key-/);
  });

  it("gives back what a failed procedure took, and answers with its error", async () => {
    for (let calls = 0; calls < 10; calls += 1) {
      const failed = await post("/ask", '""', "key-failed");
      expect(failed.status).toBe(400);
      expect(await failed.text()).toContain("Send a question.");
    }
    expect((await post("/ask", '"What is a lease?"', "key-failed")).status).toBe(200);
  });

  it("settles what procedures cost", async () => {
    const question = `"${"x".repeat(235)}"`;
    expect(await computeStatuses(2, "/ask", question, "key-settled")).toEqual([200, 200]);
    const refused = await post("/ask", question, "key-settled");
    // Two calls were estimated at 200 tokens, and have cost 962 of 1000.
    expect(refused.headers.get("ratelimit")).toMatch(/"tokens";r=3[89];/);
  });

  it("decides on each call of a batch", async () => {
    const calls = '{"0":"a","1":"b","2":"c","3":"d"}';
    const batch = await post("/ask,ask,ask,ask?batch=1", calls, "key-batch");
    expect(batch.status).toBe(207);
    const results = (await batch.json()) as readonly object[];
    expect(results.filter((result) => "error" in result)).toHaveLength(1);
  });
});

describe("nestjs", () => {
  runs(() => getProgram("nestjs"));

  it("limits a controller with a guard, and settles what its handler says", async () => {
    expect(new Set(await computeStatuses(20, "/chat", "{}"))).toEqual(new Set([201]));
    const refused = await post("/chat", "{}");
    expect(refused.status).toBe(429);
    expect(await refused.json()).toMatchObject({ status: 429, "violated-policies": ["rpm"] });
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(4000);
    // 20 calls were estimated at 10 000 tokens, and have cost 840 of 5000.
    expect(refused.headers.get("ratelimit")).toMatch(/^"rpm";r=0;t=\d+, "tpm";r=416\d;t=\d+$/);
  });

  it("limits another controller with Nest's guard and our storage", async () => {
    const { url } = server;
    for (let calls = 0; calls < 3; calls += 1)
      expect(await (await fetch(`${url}/hello`)).text()).toBe("Hello!");
    const refused = await fetch(`${url}/hello`);
    expect(refused.status).toBe(429);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(1000);
  });
});

describe("nextjs-route", () => {
  runs(nextHost);

  it("limits a route, and gives the end of each lease to after()", async () => {
    for (let calls = 0; calls < 5; calls += 1) {
      expect((await post("/", "{}")).status).toBe(400); // given back
      expect(await server.nextLine()).toBe("after: settled");
    }
    for (let calls = 0; calls < 3; calls += 1) {
      const response = await post("/", '{"question":"What is a lease?"}');
      expect(await response.json()).toEqual({ answer: "You asked: What is a lease?" });
      expect(await server.nextLine()).toBe("after: settled");
    }
    const refused = await post("/", '{"question":"What is a lease?"}');
    expect(refused.status).toBe(429);
    // Three calls were estimated at 1500 tokens, and have cost 129 of 2000.
    expect(refused.headers.get("ratelimit")).toMatch(/"tpm";r=187\d/);
  });
});

/** Runs a program for the tests around, in a folder of its own. */
function runs(program: () => string): void {
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "zae-limiter-recipes-"));
    server = await startGateway(program(), { cwd: folder, env: provider.environment });
  });
  afterAll(async () => {
    await server.stop();
    rmSync(folder, { recursive: true });
  });
}

function post(path: string, body: string, key = "abc"): Promise<Response> {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  return fetch(server.url + path, { method: "POST", headers, body });
}

/** The statuses of calls that are made one after the other. */
async function computeStatuses(
  calls: number,
  ...request: Parameters<typeof post>
): Promise<number[]> {
  const statuses: number[] = [];
  for (let call = 0; call < calls; call += 1) {
    const response = await post(...request);
    await response.text();
    statuses.push(response.status);
  }
  return statuses;
}

/** A server for the route of Next.js, with a stand-in for the only function that it uses of it. */
function nextHost(): string {
  const next = `${WORKSHOP}/node_modules/next`;
  mkdirSync(next, { recursive: true });
  writeFileSync(`${next}/package.json`, '{ "type": "module", "exports": { "./*": "./*.js" } }');
  writeFileSync(
    `${next}/server.js`,
    'export const after = (task) => void task.then(() => console.log("after: settled"));',
  );
  writeFileSync(`${WORKSHOP}/route.js`, readFileSync(getProgram("nextjs-route"), "utf8"));
  writeFileSync(
    `${WORKSHOP}/next-host.js`,
    `import { serve } from "@hono/node-server";
     import { POST } from "./route.js";
     serve({ fetch: POST, hostname: "127.0.0.1", port: 0 }, ({ port }) => console.log("http://127.0.0.1:" + port));`,
  );
  return `${WORKSHOP}/next-host.js`;
}

function getProgram(name: string): string {
  return `${root}examples/recipes/dist/${name}.js`;
}
