import { afterEach, expect, it, vi } from "vitest";
import { ValidationError, VERSION, VersionMismatchError } from "zae-limiter";
import { DynamoRepository, SCHEMA_VERSION, type DynamoOptions } from "zae-limiter/dynamodb";
import { describeWithEngine, freshTableName } from "../../support/engine.ts";
import { MeteredTransport } from "../../support/metered-transport.ts";
import { openTransport } from "../../support/transports.ts";

const CHECKS = [undefined, "warn", "must-match", "ignore"] as const;

describeWithEngine("opening with a Lambda", (engine) => {
  afterEach(() => vi.restoreAllMocks());

  /** Opens a table whose Lambda has a version, with every check twice; what came of it. */
  async function openWith(lambdaVersion: string | undefined) {
    const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    const stack = freshTableName();
    const { endpointUrl } = engine();
    await using creator = await DynamoRepository.open("app", { stack, endpointUrl });
    await creator.setVersionRecord({
      schemaVersion: SCHEMA_VERSION,
      ...(lambdaVersion !== undefined && { lambdaVersion }),
    });
    const transport = await openTransport("SDK's", engine());
    const requests: object[] = [];
    const failures: unknown[] = [];
    for (const lambda of [...CHECKS, ...CHECKS]) {
      const meter = new MeteredTransport(transport);
      const options = { stack, transport: meter, ...(lambda !== undefined && { lambda }) };
      const failure = await DynamoRepository.open("app", options).then(
        async (repository) => repository.close(),
        (error: unknown) => error,
      );
      if (lambda === "must-match") failures.push(failure);
      else expect(failure).toBeUndefined();
      requests.push(meter.counts().byOperation);
    }
    transport.close();
    return { stack, failures, requests, warnings: warned.mock.calls };
  }

  it.each(["0.0.1", "0.0.1.dev1"])(
    "of version %s warns once for each table, or throws where that was asked for",
    async (version) => {
      const { stack, failures, requests, warnings } = await openWith(version);
      const message =
        `The Lambda of stack ${stack} has version ${version}, this library ${VERSION}. ` +
        `Update it with zae-limiter upgrade --lambda-only --stack ${stack}`;
      expect(warnings).toEqual([
        [expect.stringContaining(message), { code: "WARN_LIMITER_LAMBDA_OLDER" }],
      ]);
      expect(failures).toHaveLength(2);
      for (const failure of failures) {
        expect(failure).toBeInstanceOf(VersionMismatchError);
        expect(failure).toMatchObject({
          code: "ERR_LIMITER_VERSION_MISMATCH",
          message: expect.stringContaining(message),
          lambdaVersion: version,
          canAutoUpdate: true,
        });
      }
      // One request for version and heartbeat, and one for the namespace unless it was refused.
      expect(requests.slice(0, 4)).toEqual([2, 2, 1, 2].map((BatchGetItem) => ({ BatchGetItem })));
    },
  );

  it.each([
    ["as new", VERSION],
    ["newer", "99.0.0"],
    ["not deployed", undefined],
  ])("that is %s is accepted by every check, with the same requests", async (_, version) => {
    const { failures, requests, warnings } = await openWith(version);
    expect(warnings).toEqual([]);
    expect(failures).toEqual([undefined, undefined]);
    expect(requests).toEqual(requests.map(() => ({ BatchGetItem: 2 })));
  });

  it.each([
    ["must_match", /^Invalid lambda: must be one of warn, must-match, ignore; did you mean must-/],
    [true, /^Invalid lambda: must be one of warn, must-match, ignore \(got true\)$/],
  ])("refuses the check %s before anything is sent", async (lambda, message) => {
    const { endpointUrl } = engine();
    const options = { stack: freshTableName(), endpointUrl, lambda } as unknown as DynamoOptions;
    const opening = DynamoRepository.open("app", options);
    await expect(opening).rejects.toThrow(ValidationError);
    await expect(opening).rejects.toThrow(message);
  });
});
