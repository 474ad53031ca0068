import {
  DescribeAlarmsCommand,
  type CloudWatchClient,
  type MetricAlarm,
} from "@aws-sdk/client-cloudwatch";
import type { AlarmState } from "./status-model.ts";

/** The most names that one request may have; a stack has about ten alarms. */
const MOST_NAMES = 100;

/** Asks CloudWatch for alarms by their names. */
export async function alarmStates(
  client: CloudWatchClient,
  names: readonly string[],
): Promise<readonly AlarmState[]> {
  if (names.length === 0) return [];
  const { MetricAlarms = [] } = await client.send(
    new DescribeAlarmsCommand({ AlarmNames: names.slice(0, MOST_NAMES), MaxRecords: MOST_NAMES }),
  );
  return MetricAlarms.map(alarmOf).toSorted((left, right) => (left.name < right.name ? -1 : 1));
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
