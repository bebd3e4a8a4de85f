import { codePointOffsets } from "./spans.js";

/**
 * Text under the parser. Inside it positions are UTF-16 indexes; nodes carry code points.
 *
 * @typedef {object} Source
 * @property {string} text
 * @property {Uint32Array} codePoints From a UTF-16 index to code points.
 *
 * @typedef {{from: number, to: number}} Span A stretch of the source; a line's ends before its line break.
 *
 * @typedef {object} Content Text to be read as one run although its source may lie in several lines or cells.
 * @property {Source} source
 * @property {string} text
 * @property {number[]} positions For each index of `text`, its index in the source.
 *
 * @typedef {{type: "text", text: string, start: number, end: number}} TextNode
 *   A leaf: the code points [start, end) of the source are exactly `text`.
 */

/**
 * @param {string} text
 * @returns {Source}
 */
export function makeSource(text) {
  return { text, codePoints: codePointOffsets(text) };
}

/**
 * @param {Source} source
 * @returns {Span[]}
 */
export function linesOf({ text }) {
  const lines = [];
  for (let from = 0; from <= text.length; ) {
    const found = text.indexOf("\n", from);
    const stop = found < 0 ? text.length : found;
    lines.push({ from, to: stop > from && text[stop - 1] === "\r" ? stop - 1 : stop });
    from = stop + 1;
  }
  return lines;
}

/**
 * @param {Source} source
 * @param {Span} line
 * @returns {{columns: number, at: number}} Its indentation (a tab is four columns) and where its words begin.
 */
export function indentOf({ text }, line) {
  let columns = 0;
  let at = line.from;
  for (; at < line.to && (text[at] === " " || text[at] === "\t"); at += 1) columns += text[at] === "\t" ? 4 : 1;
  return { columns, at };
}

/**
 * @param {Source} source
 * @param {Span} line
 * @param {number} columns
 * @returns {Span} The line without that much of its indentation.
 */
export function outdent({ text }, line, columns) {
  let from = line.from;
  for (let left = columns; left > 0 && from < line.to; from += 1) {
    if (text[from] !== " " && text[from] !== "\t") break;
    left -= text[from] === "\t" ? 4 : 1;
  }
  return { from, to: line.to };
}

/**
 * @param {Source} source
 * @param {Span} span
 * @returns {Span} Without spaces and tabs at either end.
 */
export function trimmed({ text }, { from, to }) {
  while (from < to && (text[from] === " " || text[from] === "\t")) from += 1;
  while (to > from && (text[to - 1] === " " || text[to - 1] === "\t")) to -= 1;
  return { from, to };
}

/**
 * @param {Source} source
 * @param {Span[]} spans
 * @param {"\n" | ""} joiner What stands between them: their own line breaks, or nothing.
 * @returns {Content}
 */
export function contentOf(source, spans, joiner) {
  const positions = [];
  const parts = spans.map(({ from, to }, index) => {
    for (let at = from; at < to; at += 1) positions.push(at);
    if (joiner === "" || index === spans.length - 1) return source.text.slice(from, to);
    positions.push(source.text.indexOf("\n", to));
    return `${source.text.slice(from, to)}\n`;
  });
  return { source, text: parts.join(""), positions };
}

/**
 * @param {Content} content
 * @param {number} from
 * @param {number} to
 * @returns {TextNode[]} One leaf for each stretch that is unbroken in the source.
 */
export function leavesOf({ source, text, positions }, from, to) {
  /** @type {TextNode[]} */
  const leaves = [];
  for (let begin = from, at = from; at < to; at += 1) {
    if (at + 1 < to && positions[at + 1] === positions[at] + 1) continue;
    const start = source.codePoints[positions[begin]];
    const end = source.codePoints[positions[at] + 1];
    leaves.push({ type: "text", text: text.slice(begin, at + 1), start, end });
    begin = at + 1;
  }
  return leaves;
}
