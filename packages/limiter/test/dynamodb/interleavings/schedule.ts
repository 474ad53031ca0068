import type { Client } from "./client.ts";
import { AMBIGUOUS, NETWORK_ERRORS, WRITES, type HeldCall } from "./gate.ts";
import { startSomeMerge, startSomething, startSomeSplit } from "./operations.ts";
import { between, pick } from "../../support/seeded/random-choice.ts";
import type { Fault, Scenario } from "./scenario.ts";
import { requestText } from "./story.ts";
import { STATEMENT_FAULTS } from "../../support/statement-faults.ts";
import { writtenKeys } from "../../support/written-items.ts";
import { isMergeRequest } from "./watched-table.ts";
import { firstHalf, isTearable, secondHalf } from "./torn-read.ts";
import type { World } from "./world.ts";

/** Far more than any seed takes: something goes round in circles otherwise. */
const MOST_EVENTS = 20_000;

/** How often a reply stays on its way for longer, where merges are late. */
const HELD_BACK = 0.8;

/** How much more often a batch of statements suffers something of its own: there are few. */
const OF_BATCHES = 2;

/** Calls that a process has under way at most. */
const MOST_UNDER_WAY = 6;

interface Event {
  readonly weight: number;
  happen(): Promise<void> | void;
}

/**
 * Lets one thing after another happen, in a random order, until all are done.
 */
export async function play(world: World, plan: Plan = world.scenario): Promise<void> {
  const { operations, crashes, configChanges, splits, merges, clockSteps, faultRate } = plan;
  const left = { operations, crashes, configChanges, splits, merges, clockSteps };
  world.faultRate = faultRate;
  world.lateMerges = plan.lateMerges;
  for (let events = 0; ; events += 1) {
    if (events > MOST_EVENTS) throw new Error(`No end after ${MOST_EVENTS} events`);
    const possible = possibleEvents(world, left).filter(({ weight }) => weight > 0);
    if (possible.length === 0) return;
    await choose(world, possible).happen();
    await settle();
    world.throwIfFailed();
  }
}

/** What is still to happen, how often. */
type Left = Record<
  "operations" | "crashes" | "configChanges" | "splits" | "merges" | "clockSteps",
  number
>;

/** What happens, and how often the network fails. */
export type Plan = Readonly<Left> & Pick<Scenario, "faultRate" | "lateMerges">;

function possibleEvents(world: World, left: Left): readonly Event[] {
  const { random, clients, late, time } = world;
  const idle = clients.filter(({ underWay }) => underWay.size < MOST_UNDER_WAY);
  const held = clients.flatMap((client) => client.gate.held.map((call) => ({ client, call })));
  const isBusy = held.length > 0 || left.operations > 0;
  const some = (weight: number, possible: boolean, happen: Event["happen"]): Event => ({
    weight: possible ? weight : 0,
    happen,
  });
  return [
    some(3, left.operations > 0 && idle.length > 0, () => {
      const client = pick(random, idle);
      for (let burst = between(random, 1, 3); burst > 0 && left.operations > 0; burst -= 1) {
        left.operations -= 1;
        startSomething(world, client);
      }
    }),
    some(8, held.length > 0, () => {
      const { client, call } = pick(random, held);
      if (isHeldBack(world, call)) return undefined;
      return call.reply === undefined
        ? answer(world, client, call)
        : deliverOrLose(world, client, call);
    }),
    some(1, late.length > 0, () => arriveLate(world)),
    some(2, isBusy, () => time.advance(someMs(world))),
    some(1, !isBusy && time.isAnybodyAsleep, () => time.advance(time.untilFirstWakesMs())),
    some(0.4, left.splits > 0 && isBusy, () => {
      left.splits -= 1;
      startSomeSplit(world, pick(random, clients));
    }),
    some(0.6, left.merges > 0 && isBusy && world.table.splitEntityIds.length > 0, () => {
      left.merges -= 1;
      startSomeMerge(world, pick(random, clients));
    }),
    some(0.15, left.crashes > 0 && held.length > 0, () => {
      left.crashes -= 1;
      crash(world, pick(random, held).client);
    }),
    some(0.2, left.configChanges > 0 && isBusy, () => {
      left.configChanges -= 1;
      world.changeConfiguration(pick(random, [...world.limits.keys()]));
    }),
    some(0.2, left.clockSteps > 0 && isBusy, () => {
      left.clockSteps -= 1;
      const client = pick(random, clients);
      client.clock.stepBack(between(random, 1, 3000));
      world.noteSkew(client.clock.skewMs);
      world.coverage.count("clock set back");
      world.tell(`the clock of process ${client.number} is set back`);
    }),
  ];
}

function choose({ random }: World, events: readonly Event[]): Event {
  let rest = random() * events.reduce((total, { weight }) => total + weight, 0);
  return events.find(({ weight }) => (rest -= weight) < 0) ?? events.at(-1)!;
}

function someMs({ random, scenario, time }: World): number {
  // To the end of a minute, where the windows of quotas end, or close to it.
  if (scenario.hasQuota && random() < 0.1)
    return Math.max(0, 60_000 - (time.nowMs % 60_000) + between(random, -5, 5));
  const dice = random();
  if (dice < 0.6) return between(random, 0, 5);
  return dice < 0.95 ? between(random, 5, 200) : between(random, 200, 5000);
}

/** Lets a request reach the engine, or not. */
async function answer(world: World, client: Client, call: HeldCall): Promise<void> {
  const isLate = isMergeRequest(call) && world.random() < world.lateMerges;
  const fault = isLate ? "time-out" : remaining(call, someFault(world));
  if (fault === undefined || fault === "reply lost") {
    if (isBatch(call)) suffer(world, call);
    if (call.firstHalf === undefined && (await tear(world, call))) return;
    await apply(world, call, `request of process ${client.number}`);
    if (WRITES.has(call.operation) && call.surroundings.operations.length > 1)
      world.coverage.count("write of a process with several calls under way");
    return;
  }
  if (fault === "time-out") world.late.push(call);
  fail(world, client, call, fault);
}

/** What has been done in part has arrived: all that can happen is that the reply is lost. */
function remaining({ firstHalf: done }: HeldCall, fault: Fault | undefined): Fault | undefined {
  const mayBe = done === undefined || fault === "time-out" || fault === "connection reset";
  return mayBe ? fault : undefined;
}

function isBatch({ operation }: HeldCall): boolean {
  return operation === "BatchExecuteStatement";
}

/** Lets some statements of a batch fail, sometimes. */
function suffer(world: World, call: HeldCall): void {
  const { random, faultRate, scenario, coverage } = world;
  if (call.firstHalf === undefined) coverage.count("batch of statements");
  if (call.faultOf !== undefined || random() >= OF_BATCHES * faultRate) return;
  if (!scenario.batchFaults.includes("statements fail") || call.firstHalf !== undefined) return;
  const faults = new Map<string, (typeof POSSIBLE_FAULTS)[number]>();
  for (const { PK } of writtenKeys(call.operation, call.input))
    if (random() < 0.5) faults.set(PK.S, pick(random, POSSIBLE_FAULTS));
  for (const fault of faults.values()) coverage.count(`statement: ${fault}`);
  call.faultOf = ({ PK }) => faults.get(PK.S);
}

/** One that is denied would end the sharing of its process. */
const POSSIBLE_FAULTS = STATEMENT_FAULTS.filter((fault) => fault !== "denied");

function deliverOrLose(world: World, client: Client, call: HeldCall): void {
  const { coverage } = world;
  const reply = call.reply!;
  // Rare, and worth more than others: only the shard that it was merged into shows it now.
  const isGone = reply.ok && WRITES.has(call.operation) && world.table.isGone(call);
  const fault = isGone && world.random() < 2 * world.lateMerges ? "reply lost" : someFault(world);
  if (fault === "reply lost" || fault === "connection reset" || fault === "time-out") {
    coverage.count("reply lost");
    if (reply.ok && WRITES.has(call.operation)) coverage.count("reply lost of an applied write");
    if (isGone) coverage.count("reply lost of a write to a shard that is gone");
    if (isBatch(call)) coverage.count("batch of statements whose reply was lost");
    return fail(world, client, call, fault === "time-out" ? fault : "connection reset");
  }
  if (isBatch(call) && reply.ok) shorten(world, call);
  deliver(world, client, call);
}

/** Takes a place from the reply to a batch, sometimes. */
function shorten(world: World, call: HeldCall): void {
  const { random, faultRate, scenario, coverage } = world;
  if (random() >= OF_BATCHES * faultRate || !scenario.batchFaults.includes("reply in part")) return;
  const { output } = call.reply as { readonly output: { readonly Responses: readonly object[] } };
  const missing = between(random, 0, output.Responses.length - 1);
  coverage.count("reply in part");
  call.reply = {
    ok: true,
    output: { ...output, Responses: output.Responses.toSpliced(missing, 1) },
  };
}

/**
 * Where merges are late, replies to writes that only merges can concern are too, mostly: then the
 * shard is gone by the time at which its writer would have heard of it.
 */
function isHeldBack(world: World, call: HeldCall): boolean {
  const mayBeGone =
    world.lateMerges > 0 &&
    call.reply?.ok === true &&
    (call.operation === "UpdateItem" || isBatch(call)) &&
    world.table.isOfFurtherShard(call) &&
    !world.table.isGone(call);
  return mayBeGone && world.random() < HELD_BACK;
}

/** Tells a process what the engine said. */
export function deliver(world: World, client: Client, call: HeldCall): void {
  const reply = call.reply!;
  if (WRITES.has(call.operation)) world.countReshapes(call.reshapesAtReply, "write and reply");
  world.tell(`process ${client.number} gets its reply`);
  if (isBatch(call) && reply.ok) noteTroubles(client, call, reply.output);
  client.gate.remove(call);
  if (reply.ok) call.resolve(reply.output);
  else call.reject(reply.error);
}

/** What a reply to a batch leaves open is open for all that its process has under way. */
function noteTroubles(client: Client, call: HeldCall, output: object): void {
  const keys = writtenKeys(call.operation, call.input);
  const faults = keys.map((key) => call.faultOf?.(key));
  const isShort =
    (output as { readonly Responses: readonly object[] }).Responses.length < keys.length;
  const isOpen = isShort || faults.some((fault) => fault?.endsWith("internal"));
  for (const operation of client.underWay) {
    if (isOpen || faults.some((fault) => fault !== undefined)) operation.faults += 1;
    if (isOpen) operation.unknowns += 1;
  }
}

/** Lets the engine carry a request out. */
export async function apply(world: World, call: HeldCall, whose: string): Promise<void> {
  call.reply =
    call.firstHalf === undefined
      ? await world.table.apply(call)
      : await secondHalf(world.table, call);
  call.reshapesAtReply = world.reshapes;
  const said = call.reply.ok ? "applied" : (call.reply.error as Error).name;
  world.tell(`${whose}: ${said}: ${requestText(call)}`);
  if (call.reply.ok && WRITES.has(call.operation))
    world.countReshapes(call.surroundings.reshapes, "decision and write");
}

/**
 * Reads the first half of a batch, sometimes: the rest is read after other things have happened.
 */
async function tear(world: World, call: HeldCall): Promise<boolean> {
  const isTorn = isTearable(call) && world.random() < 0.5;
  if (!isTorn) return false;
  world.coverage.count(
    isBatch(call)
      ? "batch of statements applied at several moments"
      : "batch read at several moments",
  );
  call.firstHalf = await firstHalf(world.table, call);
  return true;
}

async function arriveLate(world: World): Promise<void> {
  const call = pick(world.random, world.late);
  world.late = world.late.filter((other) => other !== call);
  if (!WRITES.has(call.operation) || world.random() < 0.3) return;
  if (world.table.isGone(call)) world.coverage.count("late write to a shard that is gone");
  const { merges } = world.reshapes;
  await apply(world, call, "late request");
  if (call.reply?.ok === true) world.coverage.count("late write applied");
  if (world.reshapes.merges > merges) world.coverage.count("late merge applied");
  else if (isMergeRequest(call)) world.coverage.count("late merge refused");
}

const COUNTED = {
  "connection reset": "request lost",
  "time-out": "time-out",
  "connection refused": "request never sent",
  throttled: "throttled",
  conflict: "transaction conflict",
} as const;

/** Tells a process that the network has failed it. */
export function fail(
  world: World,
  client: Client,
  call: HeldCall,
  error: keyof typeof NETWORK_ERRORS,
): void {
  world.coverage.count(COUNTED[error]);
  world.tell(`process ${client.number} gets ${error} for ${call.operation}`);
  for (const operation of client.underWay) {
    operation.faults += 1;
    if (AMBIGUOUS.has(error) && WRITES.has(call.operation)) operation.unknowns += 1;
  }
  client.gate.remove(call);
  call.reject(NETWORK_ERRORS[error](call.operation));
}

function someFault({ random, scenario, faultRate }: World): Fault | undefined {
  return random() < faultRate && scenario.faults.length > 0
    ? pick(random, scenario.faults)
    : undefined;
}

/** A process is gone, with what it knew. What it had sent may still arrive. */
export function crash(world: World, client: Client): void {
  const { coverage, random } = world;
  const writes = client.gate.held.filter(({ operation }) => WRITES.has(operation));
  coverage.count("crash");
  if (writes.some(({ reply }) => reply === undefined)) coverage.count("crash with a write asked");
  if (writes.some(({ reply }) => reply?.ok === true))
    coverage.count("crash with a write applied, not answered");
  if (client.leases.length > 0) coverage.count("crash with a lease");
  world.tell(`process ${client.number} dies`);
  world.late.push(...client.gate.held.filter(({ reply }) => reply === undefined));
  client.isAlive = false;
  client.gate.shut();
  world.time.forget(client.clock);
  world.clients.splice(world.clients.indexOf(client), 1);
  world.abandon(client);
  world.startClient(random() < 0.5 ? client.clock.skewMs : 0);
}

/** Lets everything run that does not wait for the network or for time. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 2; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}
