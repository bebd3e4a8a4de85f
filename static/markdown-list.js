import { indentOf, outdent } from "./markdown-source.js";

/**
 * Lists: what begins an item, and which lines belong to it.
 *
 * @typedef {import("./markdown.js").Frame} Frame
 * @typedef {import("./markdown-source.js").Span} Span
 *
 * @typedef {object} Marker
 * @property {string} kind Items of one list share it: the bullet, or the sign after the number.
 * @property {boolean} ordered
 * @property {number} number
 * @property {number} columns Its indentation.
 * @property {number} inside The indentation that puts a later line inside the item.
 * @property {number} text The indentation of the item's own text.
 * @property {number} from Where that text begins, a UTF-16 index.
 * @property {boolean} empty
 */

const MARKER = /^(?:([-+*])|([0-9]{1,9})([.)]))(?=[ \t]|$)/;
const LONGEST_MARKER = 12;

/**
 * @param {Frame} frame
 * @param {number} at
 * @returns {number} The first line from there on that is not blank.
 */
export function skipBlank({ source, lines }, at) {
  while (at < lines.length && indentOf(source, lines[at]).at === lines[at].to) at += 1;
  return at;
}

/**
 * @param {Frame} frame
 * @param {number} at
 * @returns {Marker | null}
 */
export function markerOf({ source, lines }, at) {
  const line = lines[at];
  const indent = indentOf(source, line);
  const match = MARKER.exec(source.text.slice(indent.at, Math.min(line.to, indent.at + LONGEST_MARKER)));
  if (!match) return null;
  const after = indent.at + match[0].length;
  const gap = indentOf(source, { from: after, to: line.to });
  const padding = gap.at === line.to || gap.columns > 4 ? 1 : gap.columns;
  return {
    kind: match[1] ?? match[3],
    ordered: match[1] === undefined,
    number: Number(match[2] ?? 1),
    columns: indent.columns,
    inside: indent.columns + 2,
    text: indent.columns + match[0].length + padding,
    from: Math.min(after + padding, gap.at),
    empty: gap.at === line.to,
  };
}

/**
 * People indent nested items by two, three or four columns; two are enough here, whatever the marker's width.
 *
 * @param {Frame} frame
 * @param {number} at The item's first line.
 * @param {Marker} marker
 * @param {(at: number) => unknown} startsBlock Whether a line, less indented, begins something of its own.
 * @returns {{lines: Span[], next: number}}
 */
export function readItemLines(frame, at, marker, startsBlock) {
  const { source, lines } = frame;
  const item = [{ from: marker.from, to: lines[at].to }];
  let next = at + 1;
  while (next < lines.length) {
    const filled = skipBlank(frame, next);
    const blank = filled > next;
    if (filled >= lines.length) break;
    const within = indentOf(source, lines[filled]).columns >= marker.inside;
    if (!within && (blank || startsBlock(filled) || marker.empty)) break;
    item.push(...lines.slice(next, filled), outdent(source, lines[filled], marker.text));
    next = filled + 1;
  }
  return { lines: item, next };
}
