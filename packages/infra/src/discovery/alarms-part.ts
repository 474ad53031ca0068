import { DescribeAlarmsCommand, type MetricAlarm } from "@aws-sdk/client-cloudwatch";
import type { AwsClients } from "../aws/clients.ts";
import { seen, type Service } from "./seen.ts";
import type { AlarmState, Seen } from "./status-model.ts";

const CLOUDWATCH: Service = { name: "CloudWatch", prefix: "cloudwatch" };

/** The most names that one request may have; a stack has about twenty alarms. */
const MOST_NAMES = 100;

/** Alarms, by their names. */
export async function alarmStates(
  clients: AwsClients,
  names: readonly string[],
): Promise<Seen<readonly AlarmState[]>> {
  if (names.length === 0) return [];
  const command = new DescribeAlarmsCommand({
    AlarmNames: names.slice(0, MOST_NAMES),
    MaxRecords: MOST_NAMES,
  });
  return seen(clients, CLOUDWATCH, async (send) => {
    const { MetricAlarms = [] } = await send("DescribeAlarms", (options) =>
      clients.cloudWatch.send(command, options),
    );
    return MetricAlarms.map(alarmOf).toSorted((left, right) => (left.name < right.name ? -1 : 1));
  });
}

function alarmOf(alarm: MetricAlarm): AlarmState {
  const { AlarmName, StateValue, StateReason, StateUpdatedTimestamp, AlarmDescription } = alarm;
  return {
    name: AlarmName ?? "",
    state: StateValue ?? "",
    ...(StateReason && { reason: StateReason }),
    ...(StateUpdatedTimestamp && { since: StateUpdatedTimestamp }),
    ...(AlarmDescription && { description: AlarmDescription }),
    hasAction: alarm.ActionsEnabled !== false && (alarm.AlarmActions ?? []).length > 0,
  };
}
