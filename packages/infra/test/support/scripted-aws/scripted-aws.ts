// AWS on this machine, for tests. It is our model of AWS, written from its documentation, and no
// proof of what AWS does: CloudFormation, STS and S3 are scripted; DynamoDB and its streams are
// those of a real local engine. Signatures tell the service of a request, and are not checked.
// Nothing here waits: a stack makes progress when a request looks at it, or when the test says so.
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { AwsError, toCall, type AwsCall, type AwsReply } from "./aws-call.ts";
import { ScriptedCloudFormation } from "./cloudformation/scripted-cloudformation.ts";
import { Faults, faultError } from "./faults.ts";
import { queryError, queryResponse, type NodeMap } from "./query-protocol.ts";
import { ScriptedS3 } from "./scripted-s3.ts";

const TABLE_TYPE = "AWS::DynamoDB::Table";

/** The account that everything is in. */
const ACCOUNT = "123456789012";

/** A service: it answers a call, or throws an `AwsError`. */
interface Service {
  answer(call: AwsCall): AwsReply | Promise<AwsReply>;
}

/** A running AWS. */
export class ScriptedAws {
  readonly endpointUrl: string;
  readonly account = ACCOUNT;
  readonly cloudFormation: ScriptedCloudFormation;
  readonly s3: ScriptedS3;
  readonly faults = new Faults();
  /** Every request that arrived, in order. */
  readonly seen: AwsCall[] = [];
  readonly #engineUrl: string;
  readonly #server = createServer((incoming, outgoing) => {
    void this.#received(incoming, outgoing);
  });
  readonly #services: Readonly<Record<string, Service>>;

  private constructor(engineUrl: string, port: number) {
    this.#engineUrl = engineUrl;
    this.endpointUrl = `http://127.0.0.1:${port}`;
    this.s3 = new ScriptedS3(ACCOUNT);
    this.cloudFormation = new ScriptedCloudFormation({
      account: ACCOUNT,
      engineUrl,
      s3: this.s3,
    });
    this.#services = {
      cloudformation: this.cloudFormation,
      s3: this.s3,
      sts: { answer: callerIdentity },
      dynamodb: { answer: (call) => this.#recovery(call) ?? this.#passOn(call) },
    };
  }

  /** Starts on 127.0.0.1, in front of a DynamoDB engine. */
  static async start({ engineUrl }: { readonly engineUrl: string }): Promise<ScriptedAws> {
    const probe = createServer().listen(0, "127.0.0.1");
    await once(probe, "listening");
    const { port } = probe.address() as AddressInfo;
    probe.close();
    await once(probe, "close");
    const aws = new ScriptedAws(engineUrl, port);
    aws.#server.listen(port, "127.0.0.1");
    await once(aws.#server, "listening");
    return aws;
  }

  /** The requests of an action. */
  getSeen(action: string): readonly AwsCall[] {
    return this.seen.filter((call) => call.action === action);
  }

  async stop(): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, "close");
    this.cloudFormation.close();
  }

  async #received(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk as Buffer);
    const call = toCall(incoming, Buffer.concat(chunks), this.seen.length + 1);
    this.seen.push(call);
    const fault = this.faults.get(call);
    if (fault === "hang") return;
    if (fault === "drop") return void outgoing.destroy();
    try {
      if (fault !== undefined && fault !== "drop-reply") throw faultError(fault, call, ACCOUNT);
      const service = this.#services[call.service];
      if (service === undefined)
        throw new AwsError("UnknownService", `There is no service ${call.service}.`);
      const reply = await service.answer(call);
      if (fault === "drop-reply") return void outgoing.destroy();
      send(outgoing, call, reply);
    } catch (error) {
      sendError(outgoing, call, error);
    }
  }

  /** How far back a stack's table can be restored, which engines do not know. */
  #recovery({ action, input }: AwsCall): AwsReply | undefined {
    if (action !== "DescribeContinuousBackups") return undefined;
    const table = this.cloudFormation.stacks
      .flatMap(({ resources }) => [...resources.values()])
      .find(({ type, physicalId }) => type === TABLE_TYPE && physicalId === input["TableName"]);
    if (table === undefined) return undefined;
    const specification = table.properties["PointInTimeRecoverySpecification"] as
      | { readonly PointInTimeRecoveryEnabled?: unknown; readonly RecoveryPeriodInDays?: unknown }
      | undefined;
    const isOn = String(specification?.PointInTimeRecoveryEnabled) === "true";
    const recovery = isOn
      ? {
          PointInTimeRecoveryStatus: "ENABLED",
          // AWS's own number, if none was given.
          RecoveryPeriodInDays: Number(specification?.RecoveryPeriodInDays ?? 35),
        }
      : { PointInTimeRecoveryStatus: "DISABLED" };
    const description = {
      ContinuousBackupsStatus: "ENABLED",
      PointInTimeRecoveryDescription: recovery,
    };
    return { body: { ContinuousBackupsDescription: description } };
  }

  async #passOn({ headers, body, method }: AwsCall): Promise<AwsReply> {
    const { host: _, connection: __, "content-length": ___, ...rest } = headers;
    const answer = await fetch(this.#engineUrl, { method, headers: rest, body: body as never });
    const type = answer.headers.get("content-type");
    return {
      status: answer.status,
      headers: { "content-type": type ?? "application/x-amz-json-1.0" },
      body: new Uint8Array(await answer.arrayBuffer()),
    };
  }
}

function callerIdentity({ action }: AwsCall): AwsReply {
  if (action !== "GetCallerIdentity") throw new AwsError("InvalidAction", `No action ${action}.`);
  return {
    body: { Arn: `arn:aws:iam::${ACCOUNT}:user/developer`, UserId: "developer", Account: ACCOUNT },
  };
}

const isQuery = ({ service }: AwsCall): boolean =>
  service === "cloudformation" || service === "sts";

function send(outgoing: ServerResponse, call: AwsCall, reply: AwsReply): void {
  const { status = 200, headers = {}, body } = reply;
  if (body instanceof Uint8Array) {
    outgoing.writeHead(status, headers).end(call.method === "HEAD" ? undefined : body);
    return;
  }
  if (isQuery(call)) {
    outgoing
      .writeHead(status, { "content-type": "text/xml" })
      .end(queryResponse(call.action, body as NodeMap));
    return;
  }
  outgoing
    .writeHead(status, { "content-type": "application/x-amz-json-1.0", ...headers })
    .end(JSON.stringify(body));
}

function sendError(outgoing: ServerResponse, call: AwsCall, error: unknown): void {
  const { awsCode, status, message } =
    error instanceof AwsError
      ? error
      : // A bug of this server: the test should see it.
        new AwsError("InternalFailure", error instanceof Error ? String(error.stack) : "?", 400);
  if (isQuery(call))
    outgoing.writeHead(status, { "content-type": "text/xml" }).end(queryError(awsCode, message));
  else if (call.service === "s3")
    outgoing
      .writeHead(status, { "content-type": "application/xml" })
      .end(
        call.method === "HEAD"
          ? undefined
          : `<Error><Code>${awsCode}</Code><Message>${message}</Message></Error>`,
      );
  else
    outgoing
      .writeHead(status, {
        "content-type": "application/x-amz-json-1.0",
        "x-amzn-errortype": awsCode,
      })
      .end(JSON.stringify({ __type: awsCode, message }));
}
