import { VERSION } from "zae-limiter";
import { freshTableName } from "../../../limiter/test/support/engine.ts";
import { deployStack } from "../../src/index.ts";
import type { ScriptedAws } from "./scripted-aws/scripted-aws.ts";

/** The tags of a stack that this version made. */
export const OUR_TAGS = {
  ManagedBy: "zae-limiter",
  "zae-limiter:type": "limiter",
  "zae-limiter:version": VERSION,
} as const;

/** Deploys a stack with everything that is there by default, and returns its name. */
export async function deployedStack({ endpointUrl }: ScriptedAws): Promise<string> {
  const stack = freshTableName();
  await deployStack({ stack, region: "eu-west-1", endpointUrl });
  return stack;
}
