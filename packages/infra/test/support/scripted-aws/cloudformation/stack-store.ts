import { createHash, randomUUID } from "node:crypto";
import { AwsError, validationError, type AwsInput } from "../aws-call.ts";
import type { ScriptedChangeSet, ScriptedStack } from "./stack-state.ts";

/** All stacks, their events and their change sets. */
export class StackStore {
  readonly #account: string;
  /** By region and name; deleted ones by region and id. */
  readonly #stacks = new Map<string, ScriptedStack>();
  #events = 0;

  constructor(account: string) {
    this.#account = account;
  }

  /** Every stack, deleted ones too. */
  get all(): readonly ScriptedStack[] {
    return [...this.#stacks.values()];
  }

  /** Begins a stack. */
  create(name: string, region: string): ScriptedStack {
    const stack: ScriptedStack = {
      id: `arn:aws:cloudformation:${region}:${this.#account}:stack/${name}/${randomUUID()}`,
      name,
      region,
      createdAt: this.time(),
      updatedAt: undefined,
      deletedAt: undefined,
      status: "REVIEW_IN_PROGRESS",
      reason: undefined,
      terminationProtection: false,
      target: undefined,
      outputs: [],
      resources: new Map(),
      events: [],
      changeSets: new Map(),
      operation: undefined,
      stale: { status: "", looks: 0 },
      token: undefined,
    };
    this.#stacks.set(`${region}/${name}`, stack);
    return stack;
  }

  /** Adds an event about a resource, or about the stack itself, whose status it then is. */
  event(stack: ScriptedStack, status: string, subject?: object, reason?: string): void {
    const { logicalId, physicalId, type } = {
      logicalId: stack.name,
      physicalId: stack.id,
      type: "AWS::CloudFormation::Stack",
      ...subject,
    };
    const isStack = subject === undefined;
    const id = `${logicalId}-${createHash("sha256")
      .update(`${(this.#events += 1)}`)
      .digest("hex")
      .slice(0, 16)}`;
    const { token } = stack;
    stack.events.push({ id, at: this.time(), logicalId, physicalId, type, status, reason, token });
    if (!isStack) return;
    stack.status = status;
    stack.reason = reason;
    if (status !== "DELETE_COMPLETE") return;
    stack.deletedAt = this.time();
    this.#stacks.delete(`${stack.region}/${stack.name}`);
    this.#stacks.set(`${stack.region}/${stack.id}`, stack);
  }

  /** Two events in a row have the same time, as happens on AWS. */
  time(): Date {
    return new Date(Date.UTC(2026, 0, 1) + Math.floor(this.#events / 2) * 1000);
  }

  inRegion(region: string): readonly ScriptedStack[] {
    return this.all.filter((stack) => stack.region === region);
  }

  /** A stack by its name, or by its id, which also finds deleted ones. */
  find(nameOrId: string, region: string): ScriptedStack | undefined {
    return (
      this.#stacks.get(`${region}/${nameOrId}`) ??
      this.inRegion(region).find(({ id }) => id === nameOrId)
    );
  }

  existing(input: AwsInput, region: string): ScriptedStack {
    const name = String(input["StackName"]);
    const stack = this.find(name, region);
    if (stack === undefined) throw validationError(`Stack [${name}] does not exist`);
    return stack;
  }

  changeSet(
    input: AwsInput,
    region: string,
    need?: "optional",
  ): { readonly stack: ScriptedStack; readonly changeSet: ScriptedChangeSet | undefined } {
    const name = String(input["ChangeSetName"]);
    const stack = this.existing(input, region);
    const changeSet = stack.changeSets.get(name);
    if (changeSet === undefined && need === undefined)
      throw new AwsError("ChangeSetNotFound", `ChangeSet [${name}] does not exist`, 404);
    return { stack, changeSet };
  }
}

/** One page of a list. */
export function getPage<Item>(
  size: number,
  all: readonly Item[],
  input: AwsInput,
  getId: (item: Item) => string,
): { readonly items: readonly Item[]; readonly NextToken: string | undefined } {
  const after = input["NextToken"] as string | undefined;
  // By the last item of the page before, because new ones may have come in between.
  const begin = after === undefined ? 0 : all.findIndex((item) => getId(item) === after) + 1;
  const items = all.slice(begin, begin + size);
  const isLast = begin + size >= all.length;
  return { items, NextToken: isLast ? undefined : getId(items.at(-1)!) };
}
