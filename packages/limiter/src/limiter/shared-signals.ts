/** Something that a signal ends. */
export interface Endable {
  end(reason: unknown): void;
}

/**
 * Ends the member when the signal aborts, unless it already has. A signal gets one listener,
 * however many calls wait on it: Node warns about the eleventh, and walks through all of them to
 * add one, so that 50 000 calls that wait on one shutdown signal took seven seconds to join.
 */
export function listenTo(signal: AbortSignal, member: Endable): void {
  const listener = LISTENER_MEMO.get(signal) ?? newListener(signal);
  listener.members.add(member);
}

/** The last member to leave removes the listener. */
export function stopListeningTo(signal: AbortSignal, member: Endable): void {
  const listener = LISTENER_MEMO.get(signal);
  if (!listener?.members.delete(member) || listener.members.size > 0) return;
  signal.removeEventListener("abort", listener.onAbort);
  LISTENER_MEMO.delete(signal);
}

interface Listener {
  readonly members: Set<Endable>;
  readonly onAbort: () => void;
}

/** The listener of each signal. Limiters share it: any number of them may wait on one signal. */
const LISTENER_MEMO = new WeakMap<AbortSignal, Listener>();

function newListener(signal: AbortSignal): Listener {
  const members = new Set<Endable>();
  const onAbort = (): void => {
    for (const member of members) member.end(signal.reason);
  };
  signal.addEventListener("abort", onAbort, { once: true });
  const listener = { members, onAbort };
  LISTENER_MEMO.set(signal, listener);
  return listener;
}
