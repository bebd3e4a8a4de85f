import { contentOf, indentOf, trimmed } from "./markdown-source.js";
import { parseInline } from "./markdown-inline.js";

/**
 * Tables: a header row, a row of dashes, then rows until a line without a pipe.
 *
 * @typedef {import("./markdown.js").Frame} Frame
 * @typedef {import("./markdown-source.js").Source} Source
 * @typedef {import("./markdown-source.js").Span} Span
 * @typedef {import("./markdown-source.js").Content} Content
 *
 * @typedef {{type: "cell", align: "left" | "center" | "right" | null,
 *   children: import("./markdown-tree.js").InlineNode[]}} Cell
 * @typedef {{type: "row", header: boolean, children: Cell[]}} Row
 * @typedef {{type: "table", children: Row[]}} Table
 */

const DASHES = /^:?-+:?$/;

/**
 * @param {Source} source
 * @param {Span} line
 * @returns {Content[]} The row's cells; an escaped pipe is a pipe of the text.
 */
export function splitCells(source, line) {
  const row = trimmed(source, line);
  const cells = [];
  let spans = [];
  let from = source.text[row.from] === "|" && row.from < row.to ? row.from + 1 : row.from;
  for (let at = from; at < row.to; at += 1) {
    if (source.text[at] === "\\" && at + 1 < row.to) {
      if (source.text[at + 1] === "|") {
        spans.push({ from, to: at });
        from = at + 1;
      }
      at += 1;
    } else if (source.text[at] === "|") {
      cells.push(cellOf(source, [...spans, { from, to: at }]));
      spans = [];
      from = at + 1;
    }
  }
  if (from < row.to || spans.length > 0) cells.push(cellOf(source, [...spans, { from, to: row.to }]));
  return cells;
}

/** A cell's pieces as one content, without the spaces around them. */
function cellOf(source, spans) {
  spans[0] = { from: trimmed(source, { from: spans[0].from, to: spans[0].to }).from, to: spans[0].to };
  const last = spans.length - 1;
  spans[last] = { from: spans[last].from, to: trimmed(source, spans[last]).to };
  return contentOf(source, spans, "");
}

/**
 * @param {string} text
 * @returns {boolean} Whether it is a row of dashes, such as `| --- | :-: |`.
 */
export function isDashRow(text) {
  const cells = text.trim().replace(/^\|/, "").replace(/\|$/, "").split("|");
  return text.includes("|") && cells.every((cell) => DASHES.test(cell.trim()));
}

/**
 * @param {Frame} frame
 * @param {number} at
 * @returns {boolean}
 */
export function isTableStart(frame, at) {
  return at + 1 < frame.lines.length && isDashRow(textOf(frame, at + 1)) && textOf(frame, at).includes("|");
}

/**
 * @param {Frame} frame
 * @param {number} at
 * @returns {{block: Table, next: number} | null}
 */
export function readTable(frame, at) {
  if (!isTableStart(frame, at)) return null;
  const { source, lines } = frame;
  const aligns = splitCells(source, lines[at + 1]).map(({ text }) => alignOf(text));
  const rows = [rowOf(source, lines[at], aligns, true)];
  let next = at + 2;
  while (next < lines.length && textOf(frame, next).includes("|")) {
    rows.push(rowOf(source, lines[next], aligns, false));
    next += 1;
  }
  return { block: { type: "table", children: rows }, next };
}

/** @returns {Row} */
function rowOf(source, line, aligns, header) {
  /** @type {Cell[]} */
  const children = splitCells(source, line).map((content, index) => (
    { type: "cell", align: aligns[index] ?? null, children: parseInline(content) }
  ));
  return { type: "row", header, children };
}

function alignOf(dashes) {
  if (dashes.startsWith(":")) return dashes.endsWith(":") ? "center" : "left";
  return dashes.endsWith(":") ? "right" : null;
}

function textOf({ source, lines }, at) {
  return source.text.slice(indentOf(source, lines[at]).at, lines[at].to);
}
