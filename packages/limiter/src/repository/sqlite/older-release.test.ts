import { expect, it } from "vitest";
import { Limit, ValidationError } from "zae-limiter";
import { SqliteRepository } from "zae-limiter/sqlite";
import { ManualClock } from "zae-limiter/testing";
import { configOfRow, placeOf, READ_LEVEL } from "../../../test/support/release-before-inherit.ts";
import {
  closeLater,
  otherConnection,
  temporaryFile,
} from "../../../test/support/temporary-file.ts";
import { PolicyCache } from "../policy-cache.ts";
import { Connection } from "./database/connection.ts";

const [RPM, TPM] = [Limit.perMinute("rpm", 60), Limit.perMinute("tpm", 1000)];

it("a release that does not know inherit refuses it while it runs, and reads on when it is gone", async () => {
  const path = temporaryFile();
  const repository = closeLater(await SqliteRepository.open(path));
  await repository.setSystemDefaults([RPM, TPM]);
  await repository.setLimits("e", [RPM]);
  const connection = new Connection(await otherConnection(path));
  // Such a process empties its cache when it notices a change; here, time does that.
  const clock = new ManualClock();
  const older = new PolicyCache({
    read: (keys) =>
      keys.map((key) =>
        configOfRow(connection.row(READ_LEVEL, repository.namespaceId, ...placeOf(key))),
      ),
    clock,
    ttlMs: 1000,
  });
  const names = (resource: string): unknown => {
    const policy = older.resolve("e", resource);
    return policy instanceof Promise ? policy : policy?.limits.map(({ name }) => name);
  };
  expect(names("r")).toEqual(["rpm"]);

  await repository.setLimits("e", [RPM], { inherit: true });
  expect(names("r"), "it knows the former list for as long as it remembers it").toEqual(["rpm"]);
  await clock.advance(1000);
  expect(() => names("r")).toThrow(ValidationError);
  expect(() => names("r")).toThrow(/inherit-needs-a-newer-zae-limiter/);
  await repository.setLimits("e", [TPM]);
  expect(names("r")).toEqual(["tpm"]);

  await repository.deleteLimits("e");
  await repository.setResourceDefaults("r", [RPM], { inherit: true });
  await clock.advance(1000);
  expect(() => names("r")).toThrow(ValidationError);
  expect(names("other"), "levels that it does not need are of no concern").toEqual(["rpm", "tpm"]);
  await repository.deleteResourceDefaults("r");
  expect(names("r")).toEqual(["rpm", "tpm"]);
});
