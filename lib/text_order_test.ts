import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import fc from "fast-check";
import { compareTexts } from "./text_order.ts";

Deno.test("texts are ordered as their UTF-8 bytes are", () => {
  const texts = fc.string({
    unit: fc.constantFrom("a", "b", "\uD7FF", "\uE000", "\uFFFF", "\u{10000}", "\u{1F600}"),
    maxLength: 4,
  });
  fc.assert(fc.property(texts, texts, (a, b) => {
    assert.equal(compareTexts(a, b), Buffer.compare(Buffer.from(a), Buffer.from(b)));
  }));
});
