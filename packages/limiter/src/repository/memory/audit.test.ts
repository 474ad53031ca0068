import { expect, it } from "vitest";
import type { AuditEvent } from "../../core/audit.ts";
import { MemoryAudit } from "./audit.ts";

const DAY_MS = 86_400_000;

it("a new event does not look through all events of its entity", () => {
  let looks = 0;
  class CountedDate extends Date {
    override getTime(): number {
      looks += 1;
      return super.getTime();
    }
  }
  const audit = new MemoryAudit(
    () => 0,
    () => 90,
  );
  for (let index = 0; index < 1000; index += 1) audit.add(event(`e${index}`, new CountedDate(0)));
  expect(looks).toBeLessThan(5000);
});

it("later events of any entity remove those that have expired", () => {
  let nowMs = 0;
  const audit = new MemoryAudit(
    () => nowMs,
    () => 1,
  );
  audit.add(event("old", new Date(nowMs)));
  audit.add(event("kept", new Date(DAY_MS)));
  nowMs = DAY_MS + 1;
  for (let index = 0; index < 3; index += 1)
    audit.add({ ...event(`new-${index}`, new Date(nowMs)), entityId: "other" });
  // Returns how many it held.
  expect(audit.clear()).toBe(4);
});

function event(eventId: string, timestamp: Date): AuditEvent {
  return {
    eventId,
    timestamp,
    action: "limits_set",
    entityId: "acme",
    principal: undefined,
    resource: undefined,
    details: {},
  };
}
