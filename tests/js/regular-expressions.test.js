import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";

const FOLDER = new URL("../../static/", import.meta.url);
const LENGTH = 20_000;
const SHORT_MS = 50;
const LEAST = 30; // fewer would mean that some were not found
const STRANGERS = ["x", "7", " ", "\n", "-", "~", "é"];
// a literal stands behind a sign that no value ends in
const LITERAL = /(?<=(?:[=(,:!&|?[]|\breturn)\s*)\/(?![/*])((?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\n])+)\/([a-z]*)/g;

/** Every literal of a file, with the flags that it has. */
const literalsOf = (name) => (
  [...readFileSync(new URL(name, FOLDER), "utf8").matchAll(LITERAL)].map(([, source, flags]) => ({ name, source, flags }))
);

/** Signs that stand in a pattern, and a few that stand for its classes. */
const signsOf = (source) => [...new Set([...source.replace(/\\[pPxu]\{?\w*\}?|\\\w/g, ""), ...STRANGERS])];

/** Milliseconds to find all matches in a text. */
const cost = (pattern, text) => {
  const begin = process.cpuUsage();
  text.replace(pattern, "");
  const { user, system } = process.cpuUsage(begin);
  return (user + system) / 1000;
};

const isLinear = (pattern, piece, after) => {
  const text = (length) => piece.repeat(length / piece.length) + after;
  if (cost(pattern, text(LENGTH)) < SHORT_MS) return true;
  return [1, 2, 3, 4, 5].some(() => {
    const long = cost(pattern, text(4 * LENGTH));
    return long < SHORT_MS || long < 10 * cost(pattern, text(LENGTH));
  });
};

test("no expression of the page takes much more than four times as long for four times the text", () => {
  const found = readdirSync(FOLDER).filter((name) => name.endsWith(".js")).flatMap(literalsOf);
  assert.ok(found.length >= LEAST, `only ${found.length} were found`);
  for (const { name, source, flags } of found) {
    const pattern = new RegExp(source, flags.includes("g") ? flags : `${flags}g`);
    const signs = signsOf(source);
    for (const piece of signs.flatMap((one) => signs.map((other) => one + other))) {
      for (const after of ["", "\0"]) assert.ok(isLinear(pattern, piece, after), `${name}: /${source}/ on ${piece}`);
    }
  }
});
