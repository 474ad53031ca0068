import {
  deployStack,
  type DeployOptions,
  type DeployReport,
  type StackPlace,
} from "../../src/index.ts";
import { freshTableName } from "../../../limiter/test/support/engine.ts";
import type { ScriptedAws } from "./scripted-aws/scripted-aws.ts";

/** A stack on the scripted AWS that no other test uses. */
export interface TestStack {
  readonly stack: string;
  readonly region: string;
  readonly endpointUrl: string;
  /** Deploys it; every change is agreed to, unless options say otherwise. */
  readonly deploy: (options?: Partial<DeployOptions>) => Promise<DeployReport>;
}

/** A name for a stack, and how it is deployed. */
export function freshStack(aws: ScriptedAws): TestStack {
  const place = { stack: freshTableName(), region: "eu-west-1", endpointUrl: aws.endpointUrl };
  return {
    ...place,
    deploy: (options = {}) => deployStack({ ...place, confirm: () => true, ...options }),
  };
}

/** Where a stack is. */
export function getPlace({ stack, region, endpointUrl }: TestStack): StackPlace & {
  readonly stack: string;
} {
  return { stack, region, endpointUrl };
}
