import { describe, expect, it } from "vitest";
import { imageOf, type BucketImage } from "./bucket-item.ts";
import { BucketImages } from "./images.ts";

const KEY = "ns/BUCKET#a#r#0";

describe("BucketImages", () => {
  it("keeps a bucket when a read that was under way meanwhile found none", () => {
    const images = new BucketImages();
    const creating = images.asking(0);
    const reading = images.asking(0);
    images.remember(KEY, image("a.1"), creating);
    images.remember(KEY, undefined, reading);
    expect(images.find(KEY)?.image?.creation).toBe("a.1");
  });

  it("learns of a bucket from an answer that was overtaken by a read that found none", () => {
    const images = new BucketImages();
    const creating = images.asking(0);
    images.remember(KEY, undefined, images.asking(0));
    images.remember(KEY, image("a.1"), creating);
    expect(images.find(KEY)?.image?.creation).toBe("a.1");
  });

  it("forgets a bucket that a later read does not find", () => {
    const images = new BucketImages();
    images.remember(KEY, image("a.1"), images.asking(0));
    images.remember(KEY, undefined, images.asking(0));
    expect(images.find(KEY)?.image).toBeUndefined();
  });
});

function image(creation: string): BucketImage {
  return imageOf({ PK: { S: KEY }, cr: { S: creation }, sv: { N: "1" } });
}
