import assert from "node:assert/strict";
import { test } from "node:test";
import { webAddress } from "../../static/links.js";
import { formatRoute, parseRoute } from "../../static/route.js";

test("what is written is read back", () => {
  for (const route of [
    { view: "card", cardId: "a.b_c-1", range: { start: 0, end: 12 } }, { view: "card", cardId: "007", range: null },
    { view: "cards", topic: "", text: "" }, { view: "cards", topic: "niños", text: "¿5 % & 1+1? #a=b 😀" },
  ]) assert.deepEqual(parseRoute(formatRoute(route)), route);
});

test("an address names a card and its quote, or what is looked for among the cards", () => {
  assert.equal(formatRoute({ cardId: "agua", range: { start: 3, end: 9 } }), "#/card/agua?s=3&e=9");
  assert.equal(formatRoute({ view: "cards", topic: "", text: "a b" }), "#/cards?text=a+b");
  assert.equal(formatRoute({ view: "cards" }), "#/cards");
  assert.deepEqual(parseRoute("#/cards?x=1&topic=a%20b"), { view: "cards", topic: "a b", text: "" });
  assert.deepEqual(parseRoute("#/cards?text=a?b%"), { view: "cards", topic: "", text: "a?b%" });
});

test("any other address names nothing", () => {
  for (const hash of [
    "", "#", "#/card/", "#/card/../x", "#/card/A", "#/card/%", "#/card/a/b", "#q", "#/card/%2e%2e", "#/card", "/cards",
    "#/cards/", "#/cardsx", "#/card/cards/x", " #/cards", "#/card/a\n",
  ]) assert.equal(parseRoute(hash), null, hash);
});

test("a range that makes no sense is no range", () => {
  for (const query of ["", "?s=1", "?s=5&e=5", "?s=9&e=2", "?s=-1&e=2", "?s=1e3&e=9999", "?s=a&e=b"]) {
    assert.deepEqual(parseRoute(`#/card/a${query}`), { view: "card", cardId: "a", range: null }, query);
  }
});

test("only whole http and https addresses may be followed", () => {
  assert.equal(webAddress("https://example.org/a"), "https://example.org/a");
  for (const address of [
    "javascript:alert(1)", " https://e.org", "https://e.org/a b", "https:e.org", "synthetic", "ftp://e.org", "http://",
  ]) assert.equal(webAddress(address), null, address);
});
