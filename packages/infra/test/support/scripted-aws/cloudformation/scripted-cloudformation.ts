// CloudFormation, as its API reference and its guide on change sets and stack statuses describe it.
// It is our model of AWS. What it leaves out: nested stacks, macros, hooks, drift, stack policies.
import { randomUUID } from "node:crypto";
import {
  AwsError,
  validationError,
  type AwsCall,
  type AwsInput,
  type AwsReply,
} from "../aws-call.ts";
import type { NodeMap } from "../query-protocol.ts";
import { changesBetween } from "./changes.ts";
import {
  describedChange,
  describedChangeSet,
  describedEvent,
  describedResource,
  describedStack,
} from "./described.ts";
import { creation, deletion, update, type OperationContext } from "./operation.ts";
import { ResourceEffects, type Services } from "./resource-effects.ts";
import { getPage, StackStore } from "./stack-store.ts";
import {
  isInProgress,
  type ScriptedChangeSet,
  type ScriptedStack,
  type Target,
} from "./stack-state.ts";
import { assertUpdatable, listOutputs, getTarget } from "./target.ts";
import {
  jsonOfTemplate,
  parameterValues,
  parsedTemplate,
  type DeclaredResource,
  type Scope,
} from "./template-model.ts";

type Action = (input: AwsInput, region: string) => NodeMap | Promise<NodeMap>;

/** The reason of a change set that would change nothing. */
const NO_CHANGES =
  "The submitted information didn't contain changes. Submit different information to create a change set.";

/** CloudFormation with stacks in memory. */
export class ScriptedCloudFormation {
  /** How many steps a stack makes whenever it is read; 0: only when the test says so. */
  stepsPerLook = 40;
  /** For how many looks an operation that was begun does not show. */
  staleLooks = 0;
  /** How many events, changes and stacks a page holds. */
  pageSize = 100;
  readonly #services: Services;
  readonly #effects: ResourceEffects;
  readonly #store: StackStore;
  readonly #failures = new Map<string, string>();
  /** Templates as JSON, with a placeholder for the name of the stack: reading YAML takes long. */
  readonly #templates = new Map<string, string>();

  constructor(services: Services) {
    this.#services = services;
    this.#effects = new ResourceEffects(services);
    this.#store = new StackStore(services.account);
  }

  close(): void {
    this.#effects.close();
  }

  /** Lets the next creation, update or deletion of a resource fail. */
  failAt(logicalId: string, reason: string): void {
    this.#failures.set(logicalId, reason);
  }

  /** A stack that exists, by its name. */
  stack(name: string, region = "eu-west-1"): ScriptedStack | undefined {
    return this.#store.find(name, region);
  }

  /** Every stack, deleted ones too. */
  get stacks(): readonly ScriptedStack[] {
    return this.#store.all;
  }

  /** Adds a stack that others made, in any status. */
  putStack(
    name: string,
    options: {
      readonly status?: string;
      readonly region?: string;
      readonly tags?: Readonly<Record<string, string>>;
      readonly template?: string;
    } = {},
  ): ScriptedStack {
    const { status = "CREATE_COMPLETE", region = "eu-west-1", tags = {} } = options;
    const templateBody =
      options.template ?? JSON.stringify({ Resources: { Topic: { Type: "AWS::SNS::Topic" } } });
    const stack = this.#store.create(name, region);
    const template = parsedTemplate(templateBody);
    stack.target = { template, templateBody, tags, parameters: parameterValues(template, [], {}) };
    this.#store.event(stack, status);
    return stack;
  }

  /** Goes on with the operation of a stack, by some steps or to its end. */
  async advance(name: string, steps = Infinity, region = "eu-west-1"): Promise<void> {
    const stack = this.#store.find(name, region);
    if (stack !== undefined) await this.#advance(stack, steps);
  }

  async answer({ action, input, region }: AwsCall): Promise<AwsReply> {
    const act = this.#actions[action];
    if (act === undefined) throw new AwsError("InvalidAction", `No action ${action}.`);
    return { body: await act(input, region) };
  }

  readonly #actions: Readonly<Record<string, Action>> = {
    CreateChangeSet: (input, region) => this.#createChangeSet(input, region),
    DescribeChangeSet: (input, region) => this.#describeChangeSet(input, region),
    ExecuteChangeSet: (input, region) => this.#executeChangeSet(input, region),
    DeleteChangeSet: (input, region) => {
      const { stack, changeSet } = this.#store.changeSet(input, region, "optional");
      if (changeSet !== undefined) stack.changeSets.delete(changeSet.name);
      return {};
    },
    ListChangeSets: (input, region) => {
      const stack = this.#store.existing(input, region);
      const all = [...stack.changeSets.values()];
      return { Summaries: all.map((changeSet) => describedChangeSet(stack, changeSet)) };
    },
    DescribeStacks: async (input, region) => {
      const name = input["StackName"] as string | undefined;
      if (name === undefined) {
        const all = this.#store.inRegion(region).filter(({ deletedAt }) => deletedAt === undefined);
        const { items, ...rest } = getPage(this.pageSize, all, input, ({ id }) => id);
        return { Stacks: items.map(describedStack), ...rest };
      }
      const stack = this.#store.find(name, region);
      if (stack === undefined) throw validationError(`Stack with id ${name} does not exist`);
      const { stale } = stack;
      if (stale.looks > 0) {
        stale.looks -= 1;
        return { Stacks: [describedStack({ ...stack, status: stale.status })] };
      }
      await this.#advance(stack, this.stepsPerLook);
      return { Stacks: [describedStack(stack)] };
    },
    DescribeStackEvents: async (input, region) => {
      const stack = this.#store.existing(input, region);
      if (stack.stale.looks === 0) await this.#advance(stack, this.stepsPerLook);
      const newestFirst = stack.events.toReversed();
      const { items, ...rest } = getPage(this.pageSize, newestFirst, input, ({ id }) => id);
      return { StackEvents: items.map((event) => describedEvent(stack, event)), ...rest };
    },
    ListStackResources: (input, region) => {
      const stack = this.#store.existing(input, region);
      const all = [...stack.resources.values()];
      const { items, ...rest } = getPage(this.pageSize, all, input, ({ logicalId }) => logicalId);
      return {
        StackResourceSummaries: items.map((resource) => describedResource(stack, resource)),
        ...rest,
      };
    },
    DeleteStack: (input, region) => this.#deleteStack(input, region),
  };

  async #createChangeSet(input: AwsInput, region: string): Promise<NodeMap> {
    const stackName = String(input["StackName"]);
    const name = String(input["ChangeSetName"]);
    const type = (input["ChangeSetType"] ?? "UPDATE") as "CREATE" | "UPDATE";
    if (!/^[a-zA-Z][-a-zA-Z0-9]{0,127}$/.test(name))
      throw validationError(`Value '${name}' at 'changeSetName' failed to satisfy constraint`);
    const existing = this.#store.find(stackName, region);
    if (type === "UPDATE") assertUpdatable(existing, stackName);
    else if (existing !== undefined && existing.status !== "REVIEW_IN_PROGRESS")
      throw validationError(
        `Stack [${stackName}] already exists and cannot be created again with the changeSet [${name}].`,
      );
    const twin = existing?.changeSets.get(name);
    const token = input["ClientToken"] as string | undefined;
    if (twin !== undefined) {
      if (token === undefined || twin.token !== token)
        throw new AwsError("AlreadyExistsException", `ChangeSet ${name} already exists`);
      return { Id: twin.id, StackId: existing!.id };
    }
    const target = getTarget(input, existing?.target, (body) => this.#readJson(body, stackName));
    // AWS asks for it only where a template names what it creates in IAM, as ours does.
    const given = (input["Capabilities"] ?? []) as readonly string[];
    if (!given.includes("CAPABILITY_NAMED_IAM"))
      throw new AwsError(
        "InsufficientCapabilitiesException",
        "Requires capabilities : [CAPABILITY_NAMED_IAM]",
      );
    const stack = existing ?? this.#store.create(stackName, region);
    const importExisting = input["ImportExistingResources"] === "true";
    const changes = await changesBetween({
      resources: stack.resources,
      current: stack.target,
      target,
      scope: this.#scope(stack, target),
      imports: async (declared) => importExisting && this.#canImport(stack, declared),
    });
    const changeSet: ScriptedChangeSet = {
      id: `arn:aws:cloudformation:${region}:${this.#services.account}:changeSet/${name}/${randomUUID()}`,
      name,
      type,
      token,
      importExisting,
      createdAt: this.#store.time(),
      target,
      status: "CREATE_PENDING",
      executionStatus: "UNAVAILABLE",
      reason: undefined,
      changes,
    };
    stack.changeSets.set(name, changeSet);
    if (existing === undefined)
      this.#store.event(stack, "REVIEW_IN_PROGRESS", undefined, "User Initiated");
    return { Id: changeSet.id, StackId: stack.id };
  }

  #readJson(body: string, stackName: string): string {
    const placeholder = "NAME-OF-THE-STACK";
    const anonymous = body.replaceAll(stackName, placeholder);
    const json = this.#templates.get(anonymous) ?? jsonOfTemplate(anonymous);
    this.#templates.set(anonymous, json);
    return json.replaceAll(placeholder, stackName);
  }

  #describeChangeSet(input: AwsInput, region: string): NodeMap {
    const { stack, changeSet } = this.#store.changeSet(input, region);
    if (changeSet!.status === "CREATE_PENDING") changeSet!.status = "CREATE_IN_PROGRESS";
    else if (changeSet!.status === "CREATE_IN_PROGRESS") {
      const isEmpty = changeSet!.changes.length === 0;
      changeSet!.status = isEmpty ? "FAILED" : "CREATE_COMPLETE";
      changeSet!.executionStatus = isEmpty ? "UNAVAILABLE" : "AVAILABLE";
      if (isEmpty) changeSet!.reason = NO_CHANGES;
    }
    const isReady = changeSet!.status === "CREATE_COMPLETE";
    const shown = isReady ? changeSet!.changes : [];
    const { items, ...rest } = getPage(this.pageSize, shown, input, ({ logicalId }) => logicalId);
    return {
      ...describedChangeSet(stack, changeSet!),
      Changes: items.map(describedChange),
      ...rest,
    };
  }

  #executeChangeSet(input: AwsInput, region: string): NodeMap {
    const { stack, changeSet } = this.#store.changeSet(input, region);
    const token = input["ClientRequestToken"] as string | undefined;
    if (token !== undefined && stack.token === token) return {};
    if (changeSet!.executionStatus !== "AVAILABLE")
      throw new AwsError(
        "InvalidChangeSetStatus",
        `ChangeSet [${changeSet!.id}] cannot be executed in its current status of [${changeSet!.status}]`,
      );
    if (isInProgress(stack))
      throw new AwsError(
        "InvalidChangeSetStatus",
        `ChangeSet [${changeSet!.id}] cannot be executed while the stack is in ${stack.status}`,
      );
    changeSet!.executionStatus = "EXECUTE_IN_PROGRESS";
    // Other change sets were made for a stack that will no longer be the same.
    stack.changeSets.clear();
    stack.changeSets.set(changeSet!.name, changeSet!);
    stack.token = token;
    const context = this.#context(stack, changeSet!.target);
    stack.operation = (changeSet!.type === "CREATE" ? creation : update)(changeSet!, context);
    stack.stale = { status: stack.status, looks: this.staleLooks };
    stack.status = changeSet!.type === "CREATE" ? "CREATE_IN_PROGRESS" : "UPDATE_IN_PROGRESS";
    return {};
  }

  #deleteStack(input: AwsInput, region: string): NodeMap {
    const stack = this.#store.find(String(input["StackName"]), region);
    if (stack === undefined || stack.deletedAt !== undefined) return {};
    if (stack.terminationProtection)
      throw validationError(
        `Stack [${stack.name}] cannot be deleted while TerminationProtection is enabled`,
      );
    if (stack.status === "DELETE_IN_PROGRESS") return {};
    if (/^UPDATE_.*IN_PROGRESS$/.test(stack.status))
      throw validationError(
        `Stack [${stack.name}] cannot be deleted while in status ${stack.status}`,
      );
    stack.token = input["ClientRequestToken"] as string | undefined;
    stack.changeSets.clear();
    stack.operation = deletion(this.#context(stack, stack.target));
    stack.status = "DELETE_IN_PROGRESS";
    return {};
  }

  #context(stack: ScriptedStack, target: Target | undefined): OperationContext {
    const scope = target === undefined ? undefined : this.#scope(stack, target);
    return {
      stack,
      effects: this.#effects,
      scope: scope!,
      event: (status, subject, reason) => this.#store.event(stack, status, subject, reason),
      failure: (logicalId) => {
        const reason = this.#failures.get(logicalId);
        this.#failures.delete(logicalId);
        return reason;
      },
      outputs: () => listOutputs(scope!),
      finished: () => {
        stack.operation = undefined;
        stack.updatedAt = this.#store.time();
      },
    };
  }

  async #canImport(stack: ScriptedStack, declared: DeclaredResource): Promise<boolean> {
    // Only resources with a name that is written out, and a policy that retains them, are imported.
    const name = declared.Properties?.["TableName"];
    const isRetained = declared.DeletionPolicy?.startsWith("Retain") === true;
    if (declared.Type !== "AWS::DynamoDB::Table" || typeof name !== "string" || !isRetained)
      return false;
    const isOwned = this.#store
      .inRegion(stack.region)
      .some((other) => [...other.resources.values()].some(({ physicalId }) => physicalId === name));
    return !isOwned && (await this.#effects.tableExists(name));
  }

  #scope(stack: ScriptedStack, target: Target): Scope {
    return {
      template: target.template,
      parameters: target.parameters,
      pseudo: {
        "AWS::StackName": stack.name,
        "AWS::StackId": stack.id,
        "AWS::Region": stack.region,
        "AWS::AccountId": this.#services.account,
        "AWS::Partition": "aws",
        "AWS::URLSuffix": "amazonaws.com",
      },
      attribute: (logicalId, attribute) => {
        const resource = stack.resources.get(logicalId);
        return attribute === undefined ? resource?.physicalId : resource?.attributes[attribute];
      },
    };
  }

  async #advance(stack: ScriptedStack, steps: number): Promise<void> {
    for (let done = 0; done < steps && stack.operation !== undefined; done += 1)
      await stack.operation.next();
  }
}
