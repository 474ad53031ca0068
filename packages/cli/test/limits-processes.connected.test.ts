// Processes of the built program that apply manifests to one table: killed, stopped, two at once.
import { describeWithEngine, freshTableName } from "../../limiter/test/support/engine.ts";
import { applyingProcesses } from "./limits-processes.ts";

describeWithEngine("on a DynamoDB table", (engine) => {
  const url = (): string => {
    const endpoint = encodeURIComponent(engine().endpointUrl);
    return `dynamodb://eu-west-1/${freshTableName()}?endpoint=${endpoint}`;
  };
  // A process on a table takes its time: only what tells most is run every time.
  applyingProcesses(url, { entities: 100, seeds: 0 });
});
