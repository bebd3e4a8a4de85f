import assert from "node:assert/strict";
import { test } from "node:test";
import { plainQuote, quoteParts } from "../../static/quote-parts.js";

test("a quoted table row is its cells, an escaped pipe staying inside one", () => {
  assert.deepEqual(quoteParts("| Adultos | 10 \\| 20 mg |  |"), [{ kind: "row", cells: ["Adultos", "10 | 20 mg"] }]);
});

test("a row cut at either end is still a row", () => {
  assert.deepEqual(quoteParts("Adultos | 20 mg |"), [{ kind: "row", cells: ["Adultos", "20 mg"] }]);
  assert.deepEqual(quoteParts("| Adultos | 20 mg"), [{ kind: "row", cells: ["Adultos", "20 mg"] }]);
});

test("a row of dashes is left out", () => {
  const parts = quoteParts("| A | B |\n| --- | :-: |\n| 1 | 2 |");
  assert.deepEqual(parts.map(({ cells }) => cells), [["A", "B"], ["1", "2"]]);
});

test("a list item, a heading or a quoted line loses its mark, and only its mark", () => {
  for (const text of ["- Tome agua.", "  * Tome agua.", "12. Tome agua.", "## Tome agua.", "> Tome agua."]) {
    assert.deepEqual(quoteParts(text), [{ kind: "text", text: "Tome agua." }], text);
  }
  assert.deepEqual(quoteParts("-5 °C"), [{ kind: "text", text: "-5 °C" }]);
  assert.deepEqual(quoteParts("1.5 mg | día"), [{ kind: "text", text: "1.5 mg | día" }]);
});

test("plain words have neither pipes nor stars", () => {
  assert.equal(plainQuote("| **A** | `b` |"), "A · b");
  assert.equal(plainQuote("- uno *dos*\n- tres"), "uno dos tres");
});
