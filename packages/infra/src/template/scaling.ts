import { ref, sub, type Resources, type Value } from "../cloudformation/template.ts";
import { INDEX_NAMES, TABLE } from "./table.ts";

type Direction = "Read" | "Write";

/**
 * Auto scaling of the table and of each index, where capacity is provisioned. An index without it
 * would hold up the table: writes that an index cannot take are refused to the table, too.
 */
export function buildScaling(): Resources {
  const whole = { id: "Table", path: `\${${TABLE}}`, dimension: "table", least: "" };
  const indexes = INDEX_NAMES.map((name) => ({
    id: name,
    path: `\${${TABLE}}/index/${name}`,
    dimension: "index",
    least: "Index",
  }));
  return Object.assign(
    {},
    ...[whole, ...indexes].flatMap((target) =>
      (["Read", "Write"] as const).map((direction) => buildScalingFor(target, direction)),
    ),
  ) as Resources;
}

function buildScalingFor(
  target: {
    readonly id: string;
    readonly path: string;
    readonly dimension: string;
    readonly least: string;
  },
  direction: Direction,
): Resources {
  const id = `${target.id}${direction}Scaling`;
  const scalable: Value = {
    ServiceNamespace: "dynamodb",
    ResourceId: sub(`table/${target.path}`),
    ScalableDimension: `dynamodb:${target.dimension}:${direction}CapacityUnits`,
  };
  return {
    [`${id}Target`]: {
      Type: "AWS::ApplicationAutoScaling::ScalableTarget",
      Condition: "Provisioned",
      Properties: {
        ...scalable,
        MinCapacity: ref(`${target.least}${direction}Capacity`),
        MaxCapacity: ref(`Max${direction}Capacity`),
      },
    },
    [`${id}Policy`]: {
      Type: "AWS::ApplicationAutoScaling::ScalingPolicy",
      Condition: "Provisioned",
      Properties: {
        PolicyName: "utilization",
        PolicyType: "TargetTrackingScaling",
        ScalingTargetId: ref(`${id}Target`),
        TargetTrackingScalingPolicyConfiguration: {
          TargetValue: ref("CapacityUtilization"),
          PredefinedMetricSpecification: {
            PredefinedMetricType: `DynamoDB${direction}CapacityUtilization`,
          },
        },
      },
    },
  };
}
