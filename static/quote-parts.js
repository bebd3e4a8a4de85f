import { parseInline } from "./markdown-inline.js";
import { contentOf, makeSource } from "./markdown-source.js";
import { isDashRow, splitCells } from "./markdown-table.js";

/**
 * A quote stands in an answer without the block marks it had in its card: no bullet, no number sign, no raw pipes.
 *
 * @typedef {{kind: "text", text: string} | {kind: "row", cells: string[]}} QuotePart One line of it.
 */

const BLOCK_MARK = /^(?:#{1,6}|>|[-+*]|[0-9]{1,9}[.)])[ \t]+/;

/**
 * @param {string} text
 * @returns {QuotePart[]} In order; blank lines and a table's rows of dashes are left out.
 */
export function quoteParts(text) {
  return text.split("\n").filter((line) => line.trim() !== "" && !isDashRow(line)).map(partOf);
}

/**
 * @param {string} text
 * @returns {string} The same on one line and without inline marks, for places that show plain words.
 */
export function plainQuote(text) {
  return quoteParts(text).map((part) => (
    part.kind === "row" ? part.cells.map(plainWords).join(" · ") : plainWords(part.text).trim()
  )).join(" ");
}

/**
 * @param {string} text
 * @returns {string}
 */
function plainWords(text) {
  const wordsOf = (node) => (node.type === "text" ? node.text : (node.children ?? []).map(wordsOf).join(""));
  return parseInline(contentOf(makeSource(text), [{ from: 0, to: text.length }], "")).map(wordsOf).join("");
}

/**
 * @param {string} line
 * @returns {QuotePart}
 */
function partOf(line) {
  const bare = line.trim();
  if (bare.length > 1 && (bare.startsWith("|") || (bare.endsWith("|") && !bare.endsWith("\\|")))) {
    const cells = splitCells(makeSource(bare), { from: 0, to: bare.length }).map((cell) => cell.text);
    return { kind: "row", cells: cells.filter((cell) => cell !== "") };
  }
  return { kind: "text", text: line.trimStart().replace(BLOCK_MARK, "") };
}
