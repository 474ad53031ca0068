// Processes of the built program that apply manifests to one table: killed, stopped, or two at once.
import { describeWithEngine, freshTableName } from "../../limiter/test/support/engine.ts";
import { applyingProcesses } from "./limits-processes.ts";

describeWithEngine("on a DynamoDB table", (engine) => {
  const url = (): string => {
    const endpoint = encodeURIComponent(engine().endpointUrl);
    return `dynamodb://eu-west-1/${freshTableName()}?endpoint=${endpoint}`;
  };
  applyingProcesses(url, { entities: 200 });
});
