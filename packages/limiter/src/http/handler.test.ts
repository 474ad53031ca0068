import { getEventListeners } from "node:events";
import { RateLimiter, ValidationError, type Lease } from "zae-limiter";
import { getLease, limitHandler } from "zae-limiter/http";
import { faultyRepository } from "zae-limiter/testing";
import { expect, it, vi } from "vitest";
import { tenRequests } from "../../test/http/ten-requests.ts";

const get = (init?: RequestInit): Request => new Request("http://localhost/", init);

type Handler = Parameters<typeof limitHandler<[]>>[1];

/** Limits a handler as a server does: before the turn in which the request arrives. */
async function call(
  options: Parameters<typeof limitHandler>[0],
  handler: Handler,
  request = get(),
): Promise<Response> {
  const limited = limitHandler(options, handler);
  await undefined;
  return limited(request);
}

/** A body that makes its chunks one by one, and knows how many were asked for. */
function readCounted(chunks: readonly string[]) {
  const source = { pulls: 0, cancelled: undefined as unknown };
  const body = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        const chunk = chunks[source.pulls];
        source.pulls += 1;
        if (chunk === undefined) controller.close();
        else controller.enqueue(new TextEncoder().encode(chunk));
      },
      cancel(reason) {
        source.cancelled = reason;
      },
    },
    { highWaterMark: 0 },
  );
  return { source, body };
}

it("ends the lease when the body was read to its end, and not before", async () => {
  const { options, ends } = await tenRequests<Request>();
  const { body } = readCounted(["a", "b"]);
  const handler = limitHandler(options, () => new Response(body, { status: 201 }));
  const reader = (await handler(get())).body!.getReader();
  await reader.read();
  await reader.read();
  expect(ends).toEqual([]);
  expect((await reader.read()).done).toBe(true);
  expect(ends).toEqual([{ status: 201, completed: true, error: undefined }]);
});

it("passes chunks on one by one, and asks the handler for no more than is read", async () => {
  const { options } = await tenRequests<Request>();
  const { body, source } = readCounted(["first", "", "third"]);
  const handler = limitHandler(options, () => new Response(body));
  const response = await handler(get());
  expect(source.pulls).toBe(0);
  const reader = response.body!.getReader();
  const texts: string[] = [];
  for (let reads = 1; ; reads += 1) {
    const { done, value } = await reader.read();
    expect(source.pulls).toBe(reads);
    if (done) break;
    texts.push(new TextDecoder().decode(value));
  }
  expect(texts).toEqual(["first", "", "third"]);
});

it("says that a cancelled body was not completed, even if a pending read reports the end", async () => {
  const { options, ends } = await tenRequests<Request>();
  const { body, source } = readCounted([]);
  // The pull of this stream never enqueues, so the read stays pending until the cancel.
  const pending = new ReadableStream<Uint8Array>({ pull: () => new Promise(() => {}) });
  for (const stream of [body, pending]) {
    const reader = (await call(options, () => new Response(stream))).body!.getReader();
    const read = stream === pending ? reader.read() : undefined;
    await reader.cancel("enough");
    await read;
  }
  expect(source.cancelled).toBe("enough");
  expect(ends).toEqual([
    { status: 200, completed: false, error: undefined },
    { status: 200, completed: false, error: undefined },
  ]);
});

it("reports how a body failed, and lets the reader see the same error", async () => {
  const { options, ends } = await tenRequests<Request>();
  const failure = new Error("cut off");
  const body = new ReadableStream<Uint8Array>({ pull: () => Promise.reject(failure) });
  const response = await call(options, () => new Response(body));
  await expect(response.text()).rejects.toBe(failure);
  expect(ends).toEqual([{ status: 200, completed: false, error: failure }]);
});

it("keeps what the handler said: status, text, headers and every cookie", async () => {
  const { options, ends } = await tenRequests<Request>();
  const headers = new Headers({ "content-type": "text/x", "content-length": "2" });
  headers.append("set-cookie", "a=1; Path=/");
  headers.append("set-cookie", "b=2, 3");
  const made = new Response("ok", { status: 299, statusText: "Fine", headers });
  const response = await call(options, () => made);
  expect(response).toMatchObject({ status: 299, statusText: "Fine" });
  expect(
    [...response.headers].filter(([name]) => name !== "ratelimit" && name !== "ratelimit-policy"),
  ).toEqual([...headers]);
  expect(response.headers.getSetCookie()).toEqual(["a=1; Path=/", "b=2, 3"]);
  expect(await response.text()).toBe("ok");
  expect(ends).toHaveLength(1);
});

it("ends at once when there is no body to watch", async () => {
  const { options, ends } = await tenRequests<Request>();
  const constant = new Response(null, { status: 204 });
  const answers: readonly [Response, number][] = [
    [constant, 204],
    [constant, 204],
    [new Response(null, { status: 304 }), 304],
    [Response.redirect("http://localhost/other", 307), 307],
  ];
  for (const [made, status] of answers) {
    const response = await call(options, () => made);
    expect(response.status).toBe(status);
    expect(response.body).toBeNull();
    expect(response.headers.get("location")).toBe(made.headers.get("location"));
    expect(ends.splice(0)).toEqual([{ status, completed: true, error: undefined }]);
  }
  // A constant is not changed, or its headers would grow with each request.
  expect([...constant.headers]).toEqual([]);
});

it("passes on responses that cannot be copied: network errors, upgrades, bodies that were sent", async () => {
  const { options, ends } = await tenRequests<Request>();
  const failed = Response.error();
  expect(await call(options, () => failed)).toBe(failed);
  const upgrade = Object.defineProperty(new Response(null), "status", { value: 101 });
  expect(await call(options, () => upgrade)).toBe(upgrade);
  const constant = new Response("once");
  await constant.text();
  expect(await call(options, () => constant)).toBe(constant);
  expect(ends).toEqual([
    { status: 500, completed: true, error: undefined },
    { status: 101, completed: true, error: undefined },
    { status: 200, completed: false, error: undefined },
  ]);
});

it("does not wait for the body of a HEAD request, which is not read", async () => {
  const { options, ends } = await tenRequests<Request>();
  const handler = limitHandler(options, () => new Response("ignored"));
  await handler(get({ method: "HEAD" }));
  expect(ends).toEqual([{ status: 200, completed: true, error: undefined }]);
});

it("reports what the handler threw, and throws it", async () => {
  const { options, ends, left } = await tenRequests<Request>();
  const failure = new Error("broken");
  for (const broken of [
    () => {
      throw failure;
    },
    () => Promise.reject(failure),
  ])
    await expect(call(options, broken)).rejects.toBe(failure);
  expect(ends).toEqual([
    { status: 500, completed: true, error: failure },
    { status: 500, completed: true, error: failure },
  ]);
  // By default the work of a handler that threw is charged, as an abandoned request is.
  expect(await left()).toBe(8);
});

function listItems(): void {}

it("names the handler that returns no response, so that the platform answers 500", async () => {
  const { options, ends } = await tenRequests<Request>();
  const wrong: readonly [unknown, string][] = [
    [listItems, "Invalid response: the handler listItems must return a Response"],
    [async () => undefined, "the handler must return a Response"],
    [() => ({ ok: true }), "the handler must return a Response (got {"],
    [() => "hello", "the handler must return a Response (got 'hello')"],
  ];
  for (const [handler, message] of wrong) {
    await expect(call(options, handler as Handler)).rejects.toThrow(message);
    expect(ends.splice(0)).toEqual([
      { status: 500, completed: true, error: expect.any(ValidationError) },
    ]);
  }
  const refusing = { ...options, consume: { rpm: 11 }, respond: (() => undefined) as never };
  await expect(call(refusing, () => new Response())).rejects.toThrow(
    "respond must return a Response",
  );
});

it("ends the lease when the client goes away, before and after there is a response", async () => {
  const { options, ends } = await tenRequests<Request>();
  const early = new AbortController();
  const called = new Promise<(response: Response) => void>((isCalled) => {
    const handler = (): Promise<Response> => new Promise(isCalled);
    void call(options, handler, get({ signal: early.signal })).then((late) => late.text());
  });
  const respond = await called;
  early.abort();
  // A client must not get its tokens back by hanging up, so this is not the status of a failure.
  expect(ends).toEqual([{ status: 200, completed: false, error: undefined }]);
  respond(new Response("late", { status: 503 }));
  const late = new AbortController();
  const handler = limitHandler(options, () => new Response("body", { status: 203 }));
  const response = await handler(get({ signal: late.signal }));
  late.abort();
  expect(await response.text()).toBe("body");
  expect(ends.slice(1)).toEqual([{ status: 203, completed: false, error: undefined }]);
});

it("leaves no listener on the signal of a request that has ended", async () => {
  const { options } = await tenRequests<Request>();
  for (const body of ["body", null]) {
    const request = get();
    await (await call(options, () => new Response(body), request)).text();
    expect(getEventListeners(request.signal, "abort")).toEqual([]);
  }
});

it("charges nothing to a client that is gone before its handler runs", async () => {
  const { options, left, clock } = await tenRequests<Request>();
  const handler = vi.fn(() => new Response());
  const gone = get({ signal: AbortSignal.abort() });
  expect((await call(options, handler, gone)).status).toBe(499);
  const client = new AbortController();
  const waiting = limitHandler({ ...options, consume: { rpm: 10 }, waitUpToMs: 60_000 }, handler);
  await options.limiter.acquire(
    { entityId: "key-1", resource: "web", consume: { rpm: 5 } },
    () => {},
  );
  const waited = waiting(get({ signal: client.signal }));
  await clock.advance(1000);
  client.abort();
  expect((await waited).status).toBe(499);
  await clock.advance(29_000);
  expect(handler).not.toHaveBeenCalled();
  expect(await left()).toBe(10);
});

it("lets the application answer refusals, and adds the headers that it leaves out", async () => {
  const onRefused = vi.fn();
  const { options } = await tenRequests<Request>({ consume: { rpm: 11 }, onRefused });
  const respond = vi.fn(async () =>
    Response.json({ ok: false }, { status: 420, headers: { "cache-control": "max-age=1" } }),
  );
  const request = get();
  const response = await call({ ...options, respond }, () => new Response(), request);
  expect(response.status).toBe(420);
  expect(Object.fromEntries(response.headers)).toMatchObject({
    "content-type": "application/json",
    "cache-control": "max-age=1",
    "x-should-retry": "false",
  });
  expect(await response.json()).toEqual({ ok: false });
  const refusal: unknown = onRefused.mock.calls[0]?.[0];
  expect(respond).toHaveBeenCalledWith(refusal, request);
  const bare = { ...options, respond: () => new Response(null, { status: 429 }) };
  expect((await call(bare, () => new Response())).headers.has("content-type")).toBe(false);
  const failure = new Error("broken");
  const broken = limitHandler({ ...options, respond: () => Promise.reject(failure) }, respond);
  await expect(broken(get())).rejects.toBe(failure);
});

it("checks its options when the handler is made", async () => {
  const { options } = await tenRequests<Request>();
  const handler = vi.fn(() => new Response());
  expect(() => limitHandler({ ...options, limiter: undefined as never }, handler)).toThrow(
    ValidationError,
  );
  expect(() => limitHandler({ ...options, respond: 429 as never }, handler)).toThrow("respond");
  expect(() => limitHandler({ ...options, answer: handler } as never, handler)).toThrow("answer");
  expect(() => limitHandler(options, undefined as never)).toThrow("handler");
});

it("hands on what the platform passes, and the lease", async () => {
  const { options, left } = await tenRequests<Request>({ settle: () => undefined });
  let lease: Lease | undefined;
  const handler = limitHandler(options, (request, { id }: { id: string }, further: number) => {
    lease = getLease(request);
    lease?.settle({ rpm: 3 });
    return new Response(`${id} ${further}`);
  });
  const response = await handler(get(), { id: "a" }, 2);
  expect(await left()).toBe(9);
  expect(await response.text()).toBe("a 2");
  expect(await left()).toBe(7);
});

it("passes a response on unchanged when no entity is named", async () => {
  const { options, left } = await tenRequests<Request>({ entity: () => undefined });
  const constant = new Response("as it is");
  expect(await call(options, () => constant)).toBe(constant);
  expect(await left()).toBe(10);
});

it("gives the platform a promise of the end of the lease before the handler runs", async () => {
  const waited: Promise<void>[] = [];
  const { options, repository, clock, ends } = await tenRequests<Request>({
    waitUntil: (settled) => waited.push(settled),
  });
  const slow = faultyRepository(repository, (operation) =>
    operation === "giveBack" ? { delayMs: 1000 } : undefined,
  );
  const limiter = new RateLimiter({ repository: slow });
  const response = await call({ ...options, limiter, settle: () => "give-back" }, () => {
    expect(waited).toHaveLength(1);
    return new Response("body");
  });
  let isSettled = false;
  void waited[0]!.then(() => (isSettled = true));
  expect(await response.text()).toBe("body");
  await clock.advance(999);
  expect(isSettled).toBe(false);
  await clock.advance(1);
  expect(isSettled).toBe(true);
  // Also of a request whose handler does not run.
  await call(options, () => new Response(), get({ signal: AbortSignal.abort() }));
  await waited[1];
  expect([waited.length, ends]).toEqual([2, []]);
});
