import assert from "node:assert/strict";
import { test } from "node:test";
import { webAddress } from "../../static/links.js";
import { formatRoute, parseRoute } from "../../static/route.js";

test("what is written is read back", () => {
  for (const route of [{ cardId: "a.b_c-1", range: { start: 0, end: 12 } }, { cardId: "007", range: null }]) {
    assert.deepEqual(parseRoute(formatRoute(route)), route);
  }
  assert.equal(formatRoute({ cardId: "agua", range: { start: 3, end: 9 } }), "#/card/agua?s=3&e=9");
});

test("an address that names no card opens none", () => {
  for (const hash of ["", "#", "#/card/", "#/card/../x", "#/card/A", "#/card/%", "#/card/a/b", "#q", "#/card/%2e%2e"]) {
    assert.equal(parseRoute(hash), null, hash);
  }
});

test("a range that makes no sense is no range", () => {
  for (const query of ["", "?s=1", "?s=5&e=5", "?s=9&e=2", "?s=-1&e=2", "?s=1e3&e=9999", "?s=a&e=b"]) {
    assert.deepEqual(parseRoute(`#/card/a${query}`), { cardId: "a", range: null }, query);
  }
});

test("only whole http and https addresses may be followed", () => {
  assert.equal(webAddress("https://example.org/a"), "https://example.org/a");
  for (const address of [
    "javascript:alert(1)", " https://e.org", "https://e.org/a b", "https:e.org", "synthetic", "ftp://e.org", "http://",
  ]) assert.equal(webAddress(address), null, address);
});
