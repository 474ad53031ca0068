/*
 * A real application. Decorators are called as functions, because the compiler of the tests emits
 * no metadata for them.
 */
import "reflect-metadata";
import { Controller, Get, Module, type INestApplication } from "@nestjs/common";
import { APP_GUARD, NestFactory } from "@nestjs/core";
import {
  Throttle,
  ThrottlerGuard,
  ThrottlerModule,
  type ThrottlerStorage,
} from "@nestjs/throttler";
import { RateLimiter } from "zae-limiter";
import { MemoryRepository } from "zae-limiter/memory";
import { nestThrottlerStorage } from "zae-limiter/stores";
import { ManualClock } from "zae-limiter/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

class Routes {
  plain(): string {
    return "handled";
  }

  shared(): string {
    return "handled";
  }

  blocked(): string {
    return "handled";
  }

  uneven(): string {
    return "handled";
  }
}

function route(name: keyof Routes, ...decorators: readonly MethodDecorator[]): void {
  const descriptor = Object.getOwnPropertyDescriptor(Routes.prototype, name)!;
  for (const decorate of [Get(name), ...decorators]) decorate(Routes.prototype, name, descriptor);
}

const DAY_MS = 86_400_000;

/** One key for all routes. */
const generateKey = (): string => "everyone";

function moduleWith(storage: ThrottlerStorage): new () => object {
  class Application {
    readonly routes = Routes;
  }
  Controller()(Routes);
  route("plain");
  route(
    "shared",
    Throttle({
      default: { limit: 5, ttl: DAY_MS, generateKey },
      long: { limit: 4, ttl: DAY_MS, generateKey },
    }),
  );
  route("blocked", Throttle({ default: { limit: 1, ttl: 60_000, blockDuration: 90_000 } }));
  route("uneven", Throttle({ default: { limit: 1, ttl: 1500, blockDuration: 0 } }));
  Module({
    imports: [
      ThrottlerModule.forRoot({
        throttlers: [
          { ttl: 60_000, limit: 3 },
          { name: "long", ttl: 3_600_000, limit: 4 },
        ],
        storage,
      }),
    ],
    controllers: [Routes],
    providers: [{ provide: APP_GUARD, useClass: ThrottlerGuard }],
  })(Application);
  return Application;
}

describe("@nestjs/throttler", () => {
  const clock = new ManualClock();
  const limiter = new RateLimiter({ repository: new MemoryRepository({ clock }) });
  const storage = nestThrottlerStorage({ limiter, resource: "api" });
  let url = "";
  let app: INestApplication | undefined;

  beforeAll(async () => {
    app = await NestFactory.create(moduleWith(storage), { logger: false });
    await app.listen(0, "127.0.0.1");
    url = await app.getUrl();
  }, 60_000);

  afterAll(() => app?.close());

  it("allows up to the limit of each throttler, refuses with its headers, and refills", async () => {
    const first = await fetch(`${url}/plain`);
    expect(first.status).toBe(200);
    expect(first.headers.get("x-ratelimit-remaining")).toBe("2");
    expect(first.headers.get("x-ratelimit-reset")).toBe("20");
    expect(first.headers.get("x-ratelimit-remaining-long")).toBe("3");
    expect(first.headers.get("x-ratelimit-reset-long")).toBe("900");
    await fetch(`${url}/plain`);
    await fetch(`${url}/plain`);
    const refused = await fetch(`${url}/plain`);
    expect(refused.status).toBe(429);
    expect(refused.headers.get("retry-after")).toBe("20");
    await clock.advance(40_000);
    expect((await fetch(`${url}/plain`)).status).toBe(200);
    const long = await fetch(`${url}/plain`);
    expect(long.status).toBe(429);
    expect(long.headers.get("retry-after-long")).toBe("860");
  });

  it("throttlers with the same key count separately", async () => {
    const first = await fetch(`${url}/shared`);
    expect(first.headers.get("x-ratelimit-remaining")).toBe("4");
    expect(first.headers.get("x-ratelimit-remaining-long")).toBe("3");
  });

  it("limits that the storage cannot keep are errors of the application", async () => {
    expect((await fetch(`${url}/blocked`)).status).toBe(500);
    expect((await fetch(`${url}/uneven`)).status).toBe(500);
    await expect(storage.increment("key", 60_000, 1, 90_000, "default")).rejects.toThrow(
      /Invalid blockDuration: must not be longer than the ttl/,
    );
    await expect(storage.increment("key", 1500, 1, 0, "default")).rejects.toThrow(
      /Invalid ttl: must be whole seconds/,
    );
  });
});
