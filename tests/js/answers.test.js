import assert from "node:assert/strict";
import { test } from "node:test";
import { sourcesOf, statementsOf } from "../../static/statements.js";

const text = (words) => ({ type: "text", text: words, language: "es" });
const cited = (number) => ({ type: "citation", citation: number - 1, number, card_id: `card-${number}` });

test("a statement is some text and the citations after it", () => {
  const segments = [text("Uno. "), cited(1), text(" "), cited(2), text(" Dos. "), cited(1), text(".")];
  assert.deepEqual(statementsOf(segments).map((statement) => statement.length), [4, 3]);
  assert.deepEqual(statementsOf(segments).flat(), segments);
});

test("no segments are no statements", () => assert.deepEqual(statementsOf([]), []));

test("a card quoted twice is one source with two quotes, and an unknown one is none", () => {
  const citation = (number, verdict, quote) => ({ number, card_id: `card-${number}`, verdict, quote });
  const sources = sourcesOf([
    citation(2, "valid", "c"), citation(1, "valid", "a"), citation(1, "weak", "b"), citation(3, "unknown", "d"),
  ]);
  const quotes = sources.map(({ number, citations }) => [number, citations.map(({ quote }) => quote)]);
  assert.deepEqual(quotes, [[1, ["a", "b"]], [2, ["c"]]]);
});
