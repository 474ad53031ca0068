/**
 * One listener for each signal, however many wait for it. Node warns about the eleventh listener of
 * a signal, and walks through all of them to add one: 50 000 calls that wait on the signal of one
 * shutdown joined in seven seconds.
 */
export class SharedSignals<Member> {
  readonly #onAbort: (member: Member, reason: unknown) => void;
  readonly #listeners = new WeakMap<AbortSignal, Listener<Member>>();

  constructor(onAbort: (member: Member, reason: unknown) => void) {
    this.#onAbort = onAbort;
  }

  /** Calls `onAbort` for the member if the signal aborts from now on. */
  join(signal: AbortSignal, member: Member): void {
    const listener = this.#listeners.get(signal) ?? this.#listen(signal);
    listener.members.add(member);
  }

  /** The last member to leave removes the listener. */
  leave(signal: AbortSignal, member: Member): void {
    const listener = this.#listeners.get(signal);
    if (!listener?.members.delete(member) || listener.members.size > 0) return;
    signal.removeEventListener("abort", listener.onAbort);
    this.#listeners.delete(signal);
  }

  #listen(signal: AbortSignal): Listener<Member> {
    const members = new Set<Member>();
    const onAbort = (): void => {
      for (const member of members) this.#onAbort(member, signal.reason);
    };
    signal.addEventListener("abort", onAbort, { once: true });
    const listener = { members, onAbort };
    this.#listeners.set(signal, listener);
    return listener;
  }
}

interface Listener<Member> {
  readonly members: Set<Member>;
  readonly onAbort: () => void;
}
