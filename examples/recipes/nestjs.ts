// A NestJS application with limits: a guard of our own on one controller, and Nest's ThrottlerGuard
// with our storage on the other.
import "reflect-metadata";
import * as nest from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { minutes, ThrottlerGuard, ThrottlerModule } from "@nestjs/throttler";
import type { NextFunction, Request, Response } from "express";
import { Limit, RateLimiter } from "zae-limiter";
import { limitRequests } from "zae-limiter/express";
import { clientAddress, hashedId, getLease, refusalProblem } from "zae-limiter/http";
import { MemoryRepository } from "zae-limiter/memory";
import { nestThrottlerStorage } from "zae-limiter/stores";

const repository = new MemoryRepository(); // or: await SqliteRepository.open("limits.db")
await repository.setSystemDefaults([Limit.perDay("rpm", 20), Limit.perDay("tpm", 5000)]);
const limiter = new RateLimiter({ repository });

const limit = limitRequests({
  limiter,
  entity: (request) => {
    const key = request.get("authorization");
    return key === undefined ? clientAddress(request) : hashedId("key", key);
  },
  resource: "chat",
  consume: { rpm: 1, tpm: 500 },
  // The status and the headers are set. Nest's filters see the error, and send it.
  respond: (refusal, _request, _response, next) =>
    next(new nest.HttpException(refusalProblem(refusal), 429)),
});

/** Runs an Express middleware as a guard: after routing, and before pipes and handlers. */
@nest.Injectable()
class LimitGuard implements nest.CanActivate {
  canActivate(context: nest.ExecutionContext): Promise<boolean> {
    const http = context.switchToHttp();
    return new Promise((resolve, reject) => {
      const next = (error?: unknown): void => (error === undefined ? resolve(true) : reject(error));
      limit(http.getRequest<Request>(), http.getResponse<Response>(), next as NextFunction);
    });
  }
}

@nest.Controller("chat")
@nest.UseGuards(LimitGuard)
class ChatController {
  @nest.Post()
  ask(@nest.Req() request: Request): { answer: string } {
    getLease(request)?.settle({ tpm: 42 }); // what the answer has really cost
    return { answer: "A bucket holds tokens." };
  }
}

@nest.Controller("hello")
@nest.UseGuards(ThrottlerGuard)
class HelloController {
  @nest.Get()
  hello(): string {
    return "Hello!";
  }
}

@nest.Module({
  imports: [
    ThrottlerModule.forRoot({
      throttlers: [{ limit: 3, ttl: minutes(60) }],
      storage: nestThrottlerStorage({ limiter, resource: "hello" }), // the line to add
    }),
  ],
  controllers: [ChatController, HelloController],
})
class AppModule {}

const app = await NestFactory.create(AppModule, { logger: ["error"] });
await app.listen(Number(process.env.PORT ?? 3000), "127.0.0.1");
console.log(`Listening on ${await app.getUrl()}`);
