import { isDashRow, parseInline, splitCells } from "./markdown.js";
import { makeSource } from "./markdown-inline.js";

/** A quote stands in an answer without the block marks it had in its card: no bullet, no number sign, no raw pipes. */

const BLOCK_MARK = /^(?:#{1,6}|>|[-+*]|[0-9]{1,9}[.)])[ \t]+/;

/** @param {string} text @returns {QuotePart[]} In order; blank lines and a table's rows of dashes are left out. */
export function quoteParts(text) {
  return text.split("\n").filter((line) => line.trim() && !isDashRow(line)).map(partOf);
}

/** @param {string} text @returns {string[]} The same without inline marks, for places that show plain words. */
export function plainLines(text) {
  return quoteParts(text).map((part) => (
    part.kind === "row" ? part.cells.map(plainWords).join(" · ") : plainWords(part.text).trim()
  ));
}

/** @param {string} text @returns {string} The same on one line. */
export function plainQuote(text) {
  return plainLines(text).join(" ");
}

function plainWords(text) {
  const wordsOf = (node) => node.text ?? (node.children ?? []).map(wordsOf).join("");
  return parseInline(text).map(wordsOf).join("");
}

/** @returns {QuotePart} */
function partOf(line) {
  const bare = line.trim();
  if (bare.length > 1 && (bare.startsWith("|") || /[^\\]\|$/.test(bare))) {
    const cells = splitCells(makeSource(bare), { from: 0, to: bare.length }).map((cell) => cell.text);
    return { kind: "row", cells: cells.filter(Boolean) };
  }
  return { kind: "text", text: line.trimStart().replace(BLOCK_MARK, "") };
}
