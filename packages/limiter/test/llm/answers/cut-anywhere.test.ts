import { describe, expect, it } from "vitest";
import { cutAt, readAll, getReader, soFar } from "./reading.ts";
import { BODIES, STREAMS, toText, textWithoutUsage } from "./samples.ts";

const LINE_ENDS = { LF: "\n", "CR LF": "\r\n", CR: "\r" };

describe.each(Object.entries(LINE_ENDS))("streams with lines that end in %s", (_, lineEnd) => {
  const encoded = (text: string): Buffer => Buffer.from(text.replaceAll("\n", lineEnd));

  describe.each(STREAMS)("$file", (sample) => {
    const stream = encoded(toText(sample));
    const rest = encoded(textWithoutUsage(sample)).toString("latin1");
    const withheld = (places: readonly number[]): ReturnType<typeof readAll> =>
      readAll(getReader(sample.protocol, { withholdsUsage: true }), cutAt(stream, places));

    it("is read in one piece", () => {
      const reader = getReader(sample.protocol);
      expect(reader.read(stream)).toBe(stream);
      expect(reader.end()).toBeUndefined();
      expect(soFar(reader)).toEqual(sample.read);
      expect(withheld([])).toEqual({ read: sample.read, passed: rest });
    });

    it("is read alike when it is cut at any byte", () => {
      const whole = JSON.stringify(withheld([])); // thousands of `toEqual` would take seconds
      const step = lineEnd === "\r" ? 7 : 1; // no provider writes CR alone
      for (let place = 0; place <= stream.length; place += step)
        if (JSON.stringify(withheld([place])) !== whole) expect.fail(`cut at ${place}`);
    });

    it("is read alike byte by byte", () => {
      const places = Array.from({ length: stream.length - 1 }, (__, index) => index + 1);
      expect(withheld(places)).toEqual({ read: sample.read, passed: rest });
    });

    it("is not held until the model has finished, and then for no longer than an event", () => {
      const reader = getReader(sample.protocol, { withholdsUsage: true });
      const blankLine = lineEnd + lineEnd;
      let passed = "";
      let hasFinished = false;
      for (const event of stream.toString("latin1").split(blankLine).slice(0, -1)) {
        const before = passed.length;
        for (const [index, byte] of Buffer.from(event + blankLine, "latin1").entries()) {
          passed += Buffer.from(reader.read(Uint8Array.of(byte)) ?? []).toString("latin1");
          if (!hasFinished && passed.length - before !== index + 1)
            expect.fail(`byte ${index} of ${event} was held`);
        }
        const isLeftOut = passed.length === before;
        expect(isLeftOut).toBe(event.startsWith(`data: ${sample.usageEvent}`));
        hasFinished ||= /"finish_reason":"/.test(event);
      }
      expect(passed).toBe(rest);
    });
  });
});

describe.each(BODIES)("$file", (sample) => {
  const body = Buffer.from(toText(sample));

  it("is read alike wherever it is cut", () => {
    const whole = readAll(getReader(sample.protocol, { isStream: false }), [body]);
    expect(whole).toEqual({ read: sample.read, passed: body.toString("latin1") });
    for (let place = 0; place <= body.length; place += 1) {
      const reader = getReader(sample.protocol, { isStream: false });
      const cut = readAll(reader, cutAt(body, [place]));
      if (JSON.stringify(cut) !== JSON.stringify(whole)) expect.fail(`cut at ${place}`);
    }
  });

  it("passes each chunk on as it is, and is known after all of it has passed", () => {
    const reader = getReader(sample.protocol, { isStream: false });
    for (const chunk of cutAt(body, everyThird(body))) expect(reader.read(chunk)).toBe(chunk);
    expect(reader).toMatchObject({ isComplete: false, outputBytes: undefined });
    expect(reader.end()).toBeUndefined();
    expect(soFar(reader)).toEqual(sample.read);
  });
});

function everyThird(bytes: Uint8Array): number[] {
  return Array.from({ length: Math.floor((bytes.length - 1) / 3) }, (_, index) => 3 * index + 3);
}
