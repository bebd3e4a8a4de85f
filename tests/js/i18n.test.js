import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";
import { chooseLanguage, formatDate, otherLanguage, wordsIn } from "../../static/i18n.js";
import { MESSAGES } from "../../static/messages.js";

const STATIC = new URL("../../static/", import.meta.url);

test("Spanish and English have the same messages with the same holes", () => {
  assert.deepEqual(Object.keys(MESSAGES.es), Object.keys(MESSAGES.en));
  const holes = (text) => (text.match(/\{\w+\}/g) ?? []).sort();
  for (const key of Object.keys(MESSAGES.es)) {
    assert.ok(MESSAGES.es[key].trim() && MESSAGES.en[key].trim(), key);
    assert.deepEqual(holes(MESSAGES.es[key]), holes(MESSAGES.en[key]), key);
  }
});

test("every message that the page names exists", () => {
  const { has } = wordsIn("es");
  const named = readdirSync(STATIC).filter((name) => /\.(js|html)$/.test(name)).flatMap((name) => {
    const text = readFileSync(new URL(name, STATIC), "utf8");
    return [...text.matchAll(/(?:say\(|data-say=)"([^"]+)"/g)].map((match) => match[1]);
  });
  assert.ok(named.length > 30);
  for (const key of named) assert.ok(has(key) || (has(`${key}.one`) && has(`${key}.other`)), key);
});

test("every problem of the server has words of its own", () => {
  for (const slug of [
    "invalid-request", "question-empty", "question-without-words", "question-too-long", "body-too-large",
    "unsupported-media-type", "unauthorized", "not-found", "not-ready", "internal", "offline", "timeout",
  ]) assert.ok(wordsIn("en").has(`problem.${slug}`), slug);
});

test("every reason for a refusal has words of its own", () => {
  for (const reason of ["below_threshold", "no_evidence", "no_cards"]) {
    assert.ok(wordsIn("es").has(`refusal.${reason}`), reason);
  }
});

test("a count chooses between one and many, none being many", () => {
  const { say } = wordsIn("es");
  assert.equal(say("status.ready", { count: 1 }), "Respuesta lista, 1 fuente");
  assert.equal(say("status.ready", { count: 2 }), "Respuesta lista, 2 fuentes");
  assert.equal(say("status.ready", { count: 0 }), "Respuesta lista, 0 fuentes");
});

test("a title with braces or dollars is filled in as it is", () => {
  assert.equal(wordsIn("en").say("source.chip", { number: 1, title: "{number} $& x" }), "Source 1: {number} $& x");
});

test("a message that does not exist is an error that names it", () => {
  assert.throws(() => wordsIn("es").say("no.such"), /no\.such/);
});

test("the language chosen before wins over the browser's, and Spanish stands in for others", () => {
  assert.equal(chooseLanguage("en", ["es-ES"]), "en");
  assert.equal(chooseLanguage(null, ["fr-FR", "en-GB", "es"]), "en");
  assert.equal(chooseLanguage("constructor", ["ca"]), "es");
  assert.equal(otherLanguage("es"), "en");
});

test("a date is written in words, and what is no date stays as it is", () => {
  assert.equal(formatDate("es", "2026-11-30"), "30 de noviembre de 2026");
  assert.equal(formatDate("en", "<b>"), "<b>");
});
