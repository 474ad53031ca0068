/** A place in a queue. */
export interface Place<Member> {
  readonly member: Member;
  readonly queue: WaitingQueue<Member>;
  /** Only the queue changes these. */
  ahead: Place<Member> | undefined;
  behind: Place<Member> | undefined;
}

/**
 * A queue with joining and leaving in constant time, from any place. With an array, 50 000 calls
 * that are aborted together would move each other 50 000 times. A `Set` leaves holes at its front,
 * and finding the first member behind them takes as long.
 */
export class WaitingQueue<Member> {
  readonly key: string;
  /** What its members leave for others, as a text. */
  readonly left: string;
  #first: Place<Member> | undefined;
  #last: Place<Member> | undefined;

  constructor(key: string, left = "") {
    this.key = key;
    this.left = left;
  }

  get first(): Member | undefined {
    return this.#first?.member;
  }

  /** Joins at the end. */
  join(member: Member): Place<Member> {
    const place = { member, queue: this, ahead: this.#last, behind: undefined };
    if (this.#last === undefined) this.#first = place;
    else this.#last.behind = place;
    this.#last = place;
    return place;
  }

  /** Leaves the queue. A place is left only once. */
  leave({ ahead, behind }: Place<Member>): void {
    if (ahead === undefined) this.#first = behind;
    else ahead.behind = behind;
    if (behind === undefined) this.#last = ahead;
    else behind.ahead = ahead;
  }

  *[Symbol.iterator](): Generator<Member> {
    for (let place = this.#first; place !== undefined; place = place.behind) yield place.member;
  }
}
