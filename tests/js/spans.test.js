import assert from "node:assert/strict";
import { test } from "node:test";
import { codePointLength, codePointOffsets, cutAtRange, locateQuote, sliceCodePoints } from "../../static/spans.js";

const TEXT = "a😀n\u0303𝒳z";

test("an emoji is one code point and a letter with a combining mark is two", () => {
  assert.equal(codePointLength(TEXT), 6);
  assert.deepEqual([...codePointOffsets(TEXT)], [0, 1, 1, 2, 3, 4, 4, 5, 6]);
});

test("a slice by code points agrees with the list of code points, at every pair of ends", () => {
  const points = Array.from(TEXT);
  for (let start = 0; start <= points.length; start += 1) {
    for (let end = start; end <= points.length + 1; end += 1) {
      assert.equal(sliceCodePoints(TEXT, start, end), points.slice(start, end).join(""));
    }
  }
});

test("an offset beyond the text is its end", () => assert.equal(sliceCodePoints(TEXT, 4, 99), "𝒳z"));

test("a leaf is cut exactly where the quote begins and ends", () => {
  const leaf = { text: "x😀yz", start: 10, end: 14 };
  assert.deepEqual(cutAtRange(leaf, { start: 11, end: 13 }), [
    { text: "x", marked: false }, { text: "😀y", marked: true }, { text: "z", marked: false },
  ]);
  assert.deepEqual(cutAtRange(leaf, { start: 0, end: 99 }), [{ text: "x😀yz", marked: true }]);
  assert.deepEqual(cutAtRange(leaf, { start: 14, end: 20 }), [{ text: "x😀yz", marked: false }]);
  assert.deepEqual(cutAtRange(leaf, null), [{ text: "x😀yz", marked: false }]);
});

test("a quote that stands where it is said to stand is found there, also its second occurrence", () => {
  assert.deepEqual(locateQuote("a b a b", { start: 4, end: 7 }, "a b"), { start: 4, end: 7 });
});

test("a quote that has moved is found by its words, and one that is gone is not found", () => {
  assert.deepEqual(locateQuote("😀 nuevo. Tome agua.", { start: 0, end: 10 }, "Tome agua."), { start: 9, end: 19 });
  assert.equal(locateQuote("Otra cosa.", { start: 0, end: 4 }, "Tome agua."), null);
});

test("a range from a link is taken at its word, unless it leaves the card", () => {
  assert.deepEqual(locateQuote("abc", { start: 1, end: 3 }), { start: 1, end: 3 });
  assert.equal(locateQuote("abc", { start: 1, end: 4 }), null);
});
