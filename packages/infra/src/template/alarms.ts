import { AGGREGATOR, DLQ } from "./aggregator.ts";
import {
  getAtt,
  NO_VALUE,
  ref,
  sub,
  when,
  type Properties,
  type Resources,
  type Value,
} from "../cloudformation/template.ts";
import { INDEX_NAMES, TABLE_NAME } from "./table.ts";

/** Where the aggregator's own metrics are. */
const AGGREGATOR_NAMESPACE = "ZaeLimiter/Aggregator";

type Direction = "Read" | "Write";

interface Alarm {
  /** The last part of its name. */
  readonly name: string;
  readonly description: string;
  /** The metric, or the expression over several. */
  readonly watches: Properties;
  readonly above: Value;
  /** How many periods in a row. @default 2 */
  readonly periods?: number;
}

/** The alarms: of the aggregator, of the table and of its indexes. */
export function alarmResources(): Resources {
  return {
    ...alarms("DeployAggregatorAlarms", aggregatorAlarms()),
    ...alarms("DeployAlarms", throttleAlarms()),
  };
}

function aggregatorAlarms(): Readonly<Record<string, Alarm>> {
  return {
    AggregatorDLQAlarm: {
      name: "aggregator-dlq-alarm",
      description:
        "The aggregator could not be run, or records of the stream expired before it could count " +
        "them: their usage is missing. Read the queue, and the logs of the function.",
      watches: metric("AWS/SQS", "ApproximateNumberOfMessagesVisible", "Maximum", {
        QueueName: getAtt(DLQ, "QueueName"),
      }),
      above: 0,
      periods: 1,
    },
    LambdaErrorRateAlarm: {
      name: "aggregator-error-rate",
      description:
        "More than 5 % of the aggregator's invocations fail as a whole, so usage is counted late; " +
        "after a day it is lost. Read the logs of the function.",
      watches: expression("100 * errors / MAX([errors, invocations])", "Failed invocations (%)", {
        errors: lambdaMetric("Errors", "Sum"),
        invocations: lambdaMetric("Invocations", "Sum"),
      }),
      above: 5,
    },
    LambdaDurationAlarm: {
      name: "aggregator-duration",
      description:
        "The aggregator comes near its timeout: the table or the archive is slow, or its memory " +
        "is too small.",
      watches: lambdaMetric("Duration", "Maximum"),
      above: ref("LambdaDurationThreshold"),
    },
    StreamIteratorAgeAlarm: {
      name: "stream-iterator-age",
      description:
        "The aggregator is more than 30 s behind the stream: usage is out of date, and hot " +
        "buckets are split late.",
      watches: lambdaMetric("IteratorAge", "Maximum"),
      above: 30_000,
    },
    AggregatorFailuresAlarm: {
      name: "aggregator-failures",
      description:
        "Records of the stream fail again and again, and hold up those behind them. After a day " +
        "they are lost. The logs name the records and the reason.",
      watches: aggregatorMetric("Failures", "Sum"),
      above: 0,
      periods: 3,
    },
    AggregatorLagAlarm: {
      name: "aggregator-lag",
      description:
        "The aggregator counts records that are more than 5 minutes old: it does not keep up, or " +
        "catches up after a failure.",
      watches: aggregatorMetric("Lag", "Maximum"),
      above: 300_000,
    },
    SplitGrowthAlarm: {
      name: "split-growth",
      description:
        "Buckets are split into over 32 more shards an hour than are merged, for 3 hours: more and " +
        "more buckets are hot, or limits are much higher than their use. More shards cost more.",
      watches: expression("FILL(splits, 0) - FILL(merges, 0)", "Shards added", {
        splits: aggregatorMetric("Splits", "Sum", 3600),
        merges: aggregatorMetric("Merges", "Sum", 3600),
      }),
      above: 32,
      periods: 3,
    },
  };
}

/** The metrics of a table leave its indexes out, and an index that throttles holds up the table. */
function throttleAlarms(): Readonly<Record<string, Alarm>> {
  return {
    DynamoDBReadThrottleAlarm: {
      name: "read-throttle",
      description: "DynamoDB refuses reads of the table: listing and reading are slow.",
      watches: throttles("Read"),
      above: 1,
    },
    DynamoDBWriteThrottleAlarm: {
      name: "write-throttle",
      description:
        "DynamoDB refuses writes of the table: a bucket is too hot, or capacity too small. Calls " +
        "are slow, or unavailable.",
      watches: throttles("Write"),
      above: 1,
    },
    IndexReadThrottleAlarm: {
      name: "index-read-throttle",
      description: "DynamoDB refuses reads of an index: listing is slow.",
      watches: indexThrottles("Read"),
      above: 1,
    },
    IndexWriteThrottleAlarm: {
      name: "index-write-throttle",
      description:
        "An index of the table refuses writes, and holds up the table: calls are slow, or " +
        "unavailable.",
      watches: indexThrottles("Write"),
      above: 1,
    },
  };
}

/** The sum over all indexes; the graph of the alarm shows each of them. */
function indexThrottles(direction: Direction): Properties {
  const ids = INDEX_NAMES.map((name) => name.toLowerCase());
  return expression(
    ids.map((id) => `FILL(${id}, 0)`).join(" + "),
    `${direction}s refused`,
    Object.fromEntries(INDEX_NAMES.map((name, at) => [ids[at]!, throttles(direction, name)])),
  );
}

function throttles(direction: Direction, index?: string): Properties {
  return metric("AWS/DynamoDB", `${direction}ThrottleEvents`, "Sum", {
    TableName: TABLE_NAME,
    ...(index !== undefined && { GlobalSecondaryIndexName: index }),
  });
}

function alarms(condition: string, each: Readonly<Record<string, Alarm>>): Resources {
  return Object.fromEntries(
    Object.entries(each).map(([id, { name, description, watches, above, periods = 2 }]) => [
      id,
      {
        Type: "AWS::CloudWatch::Alarm",
        Condition: condition,
        Properties: {
          AlarmName: sub(`\${AWS::StackName}-${name}`),
          AlarmDescription: description,
          AlarmActions: when("HasSNSTopic", [ref("AlarmSNSTopicArn")], NO_VALUE),
          ...watches,
          ComparisonOperator: "GreaterThanThreshold",
          Threshold: above,
          EvaluationPeriods: periods,
          TreatMissingData: "notBreaching",
        },
      },
    ]),
  );
}

function lambdaMetric(name: string, statistic: string): Properties {
  return metric("AWS/Lambda", name, statistic, { FunctionName: ref(AGGREGATOR) });
}

function aggregatorMetric(name: string, statistic: string, period?: number): Properties {
  return metric(AGGREGATOR_NAMESPACE, name, statistic, { TableName: TABLE_NAME }, period);
}

/** A metric, as the properties of an alarm on it. */
function metric(
  namespace: string,
  name: string,
  statistic: string,
  dimensions: Properties,
  period = 300,
): Properties {
  return {
    Namespace: namespace,
    MetricName: name,
    Dimensions: Object.entries(dimensions).map(([Name, Value]) => ({ Name, Value })),
    Statistic: statistic,
    Period: period,
  };
}

/** An expression over metrics, which have the names that it uses. */
function expression(
  text: string,
  label: string,
  metrics: Readonly<Record<string, Properties>>,
): Properties {
  return {
    Metrics: [
      { Id: "watched", Label: label, Expression: text },
      ...Object.entries(metrics).map(([id, { Statistic, Period, ...Metric }]) => ({
        Id: id,
        ReturnData: false,
        MetricStat: { Metric, Stat: Statistic!, Period: Period! },
      })),
    ],
  };
}
