import { describe, expect, it, vi } from "vitest";
import { PermissionDenied } from "zae-limiter";
import { ManualClock } from "zae-limiter/testing";

import { classifyError } from "../failure.ts";
import { CredentialCache, environmentCredentials, chooseProvider } from "./lean-credentials.ts";
import type { AwsCredentials } from "../local-engine.ts";

const MINUTE_MS = 60_000;

describe("cached credentials", () => {
  const clock = new ManualClock(0);

  /** A provider whose credentials are valid for an hour, and numbered. */
  function hourly(): {
    readonly cache: CredentialCache;
    readonly provide: ReturnType<typeof vi.fn<() => Promise<AwsCredentials>>>;
  } {
    clock.set(0);
    let count = 0;
    const provide = vi.fn(async (): Promise<AwsCredentials> => {
      count += 1;
      return {
        accessKeyId: `key-${count}`,
        secretAccessKey: "secret",
        expiration: new Date(clock.now() + 60 * MINUTE_MS),
      };
    });
    return { cache: new CredentialCache(provide, () => clock.now()), provide };
  }

  it("are requested once, however many calls wait for them", async () => {
    const { cache, provide } = hourly();
    const found = await Promise.all(Array.from({ length: 64 }, async () => cache.get()));
    expect(new Set(found).size).toBe(1);
    expect(provide).toHaveBeenCalledTimes(1);
  });

  it("are returned without waiting until they age, and then while one renewal runs", async () => {
    const { cache, provide } = hourly();
    const first = await cache.get();
    clock.set(55 * MINUTE_MS - 1);
    expect(cache.get()).toBe(first);
    expect(provide).toHaveBeenCalledTimes(1);
    clock.set(55 * MINUTE_MS);
    expect([cache.get(), cache.get(), cache.get()]).toEqual([first, first, first]);
    await vi.waitFor(() => expect(cache.get()).toMatchObject({ accessKeyId: "key-2" }));
    expect(provide).toHaveBeenCalledTimes(2);
  });

  it("stay in use while they are valid when the renewal fails, which is retried", async () => {
    const { cache, provide } = hourly();
    const first = await cache.get();
    provide.mockRejectedValue(new Error("away"));
    clock.set(56 * MINUTE_MS);
    for (let call = 0; call < 100; call += 1) expect(cache.get()).toBe(first);
    expect(provide).toHaveBeenCalledTimes(2);
    await new Promise(setImmediate);
    clock.set(57 * MINUTE_MS);
    expect(cache.get()).toBe(first);
    expect(provide).toHaveBeenCalledTimes(3);
    await new Promise(setImmediate);
    clock.set(60 * MINUTE_MS);
    await expect(cache.get()).rejects.toThrow("away");
  });

  it("are requested again when a provider has not answered for a minute", async () => {
    const { cache, provide } = hourly();
    provide.mockReturnValueOnce(new Promise(() => {}));
    void cache.get();
    clock.set(MINUTE_MS - 1);
    void cache.get();
    expect(provide).toHaveBeenCalledTimes(1);
    clock.set(MINUTE_MS);
    expect(await cache.get()).toMatchObject({ accessKeyId: "key-1" });
    expect(provide).toHaveBeenCalledTimes(2);
  });

  it("are forgotten once when the service calls them expired", async () => {
    const { cache, provide } = hourly();
    const first = await cache.get();
    for (let call = 0; call < 64; call += 1) cache.reject(first);
    const second = await cache.get();
    cache.reject(first);
    expect(cache.get()).toBe(second);
    expect(provide.mock.calls).toEqual([[{}], [{ forceRefresh: true }]]);
  });
});

describe("a provider that fails", () => {
  it.each([
    new Error("the vault is sealed"),
    "sealed",
    Object.assign(new Error("no role"), { name: "AccessDeniedException" }),
  ])("denies permission, and says what to do: %s", async (thrown) => {
    const error = await failureFor(thrown);
    expect(error).toBeInstanceOf(PermissionDenied);
    expect(error).toMatchObject({ cause: thrown });
    expect((error as Error).message).toMatch(
      /^No AWS credentials were found \(.*(sealed|no role)\): set AWS_ACCESS_KEY_ID .* or pass credentials\.$/,
    );
  });

  it.each([
    Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" }),
    Object.assign(new Error("too slow"), { name: "TimeoutError" }),
    Object.assign(new Error("the token service is busy"), { name: "ThrottlingException" }),
  ])(
    "for a while does not show that the table got anything, or is busy: $message",
    async (thrown) => {
      const error = await failureFor(thrown);
      expect(classifyError(error)).toMatchObject({
        kind: "unavailable",
        ambiguous: false,
        throttled: false,
        timedOut: false,
      });
      expect((error as Error).message).toContain(thrown.message);
    },
  );
});

describe("where credentials come from", () => {
  const place = { region: "eu-west-1", endpointUrl: undefined, environment: {} };
  const environment = { AWS_ACCESS_KEY_ID: "key", AWS_SECRET_ACCESS_KEY: "secret" };
  const mine = { accessKeyId: "mine", secretAccessKey: "secret" };

  it("uses those that were passed in first, as a value or as a function", async () => {
    expect(await (await chooseProvider(mine, { ...place, environment }))()).toBe(mine);
    expect(await (await chooseProvider(async () => mine, { ...place, environment }))()).toBe(mine);
  });

  it("then uses the environment, with token and expiry", async () => {
    const lent = {
      ...environment,
      AWS_SESSION_TOKEN: "token",
      AWS_CREDENTIAL_EXPIRATION: "2030-01-01T00:00:00Z",
    };
    expect(await (await chooseProvider(undefined, { ...place, environment: lent }))()).toEqual({
      accessKeyId: "key",
      secretAccessKey: "secret",
      sessionToken: "token",
      expiration: new Date("2030-01-01T00:00:00Z"),
    });
  });

  it("ignores blanks around a session token, as the SDK does", async () => {
    const provide = async (): Promise<AwsCredentials> => ({ ...mine, sessionToken: " token\n" });
    const cache = new CredentialCache(provide, () => 0);
    expect(await cache.get()).toEqual({ ...mine, sessionToken: "token" });
  });

  it("skips the environment while a profile is chosen, or one half is missing", () => {
    expect(environmentCredentials({ ...environment, AWS_PROFILE: "work" })).toBeUndefined();
    expect(environmentCredentials({ AWS_ACCESS_KEY_ID: "key" })).toBeUndefined();
  });

  it("needs none for an engine on this machine", async () => {
    const provide = await chooseProvider(undefined, {
      ...place,
      endpointUrl: "http://localhost:8000",
    });
    expect(await provide()).toEqual({ accessKeyId: "local", secretAccessKey: "local" });
  });

  it("says what to do when environment or provider has none", async () => {
    const losing: NodeJS.ProcessEnv = { ...environment };
    const provide = await chooseProvider(undefined, { ...place, environment: losing });
    delete losing["AWS_ACCESS_KEY_ID"];
    const error: unknown = await Promise.resolve(new CredentialCache(provide, () => 0).get()).catch(
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(PermissionDenied);
    expect((error as Error).message).toContain("set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY");
  });
});

/** The error of a provider that fails. */
async function failureFor(thrown: unknown): Promise<unknown> {
  const provide = async (): Promise<AwsCredentials> => Promise.reject(thrown);
  return Promise.resolve(new CredentialCache(provide, () => 0).get()).catch(
    (error: unknown) => error,
  );
}
