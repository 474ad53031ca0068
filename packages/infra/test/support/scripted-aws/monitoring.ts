import { AwsError, type AwsCall, type AwsReply } from "./aws-call.ts";

/** An alarm, as `DescribeAlarms` returns it. */
export interface ScriptedAlarm extends Record<string, unknown> {
  AlarmName: string;
  StateValue: "OK" | "ALARM" | "INSUFFICIENT_DATA";
}

/** CloudWatch: alarms that stacks make, and whose states a test may change. */
export class ScriptedCloudWatch {
  /** By name. */
  readonly alarms = new Map<string, ScriptedAlarm>();
  /** What `GetMetricData` returns for each query, in turn; empty by default. */
  metricValues: (query: Readonly<Record<string, unknown>>) => readonly number[] = () => [];

  answer({ action, input }: AwsCall): AwsReply {
    if (action === "GetMetricData") {
      const queries = (input["MetricDataQueries"] ?? []) as readonly Record<string, unknown>[];
      return {
        body: {
          MetricDataResults: queries.map((query) => ({
            Id: query["Id"],
            StatusCode: "Complete",
            Values: this.metricValues(query),
            Timestamps: this.metricValues(query).map((_, index) => 1_700_000_000 - index * 60),
          })),
        },
      };
    }
    if (action !== "DescribeAlarms")
      throw new AwsError("InvalidAction", `No action ${action}.`, 400);
    const names = input["AlarmNames"] as readonly string[] | undefined;
    const prefix = input["AlarmNamePrefix"] as string | undefined;
    const wanted = [...this.alarms.values()].filter(
      ({ AlarmName }) =>
        (names === undefined || names.includes(AlarmName)) &&
        (prefix === undefined || AlarmName.startsWith(prefix)),
    );
    return { body: { MetricAlarms: wanted, CompositeAlarms: [] } };
  }
}

/** SQS: queues that stacks make, with attributes that a test may change. */
export class ScriptedSqs {
  /** The attributes of each queue, by its name. */
  readonly queues = new Map<string, Record<string, string>>();

  answer({ action, input }: AwsCall): AwsReply {
    const name = String(input["QueueName"] ?? input["QueueUrl"])
      .split("/")
      .at(-1)!;
    const attributes = this.queues.get(name);
    if (attributes === undefined)
      throw new AwsError("QueueDoesNotExist", "The specified queue does not exist.");
    if (action === "GetQueueUrl") return { body: { QueueUrl: attributes["QueueUrl"] } };
    if (action !== "GetQueueAttributes")
      throw new AwsError("InvalidAction", `No action ${action}.`);
    const names = (input["AttributeNames"] ?? []) as readonly string[];
    const { QueueUrl: _, ...rest } = attributes;
    const given = Object.entries(rest).filter(
      ([attribute]) => names.includes("All") || names.includes(attribute),
    );
    return { body: { Attributes: Object.fromEntries(given) } };
  }
}
