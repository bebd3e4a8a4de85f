import { contentOf, leavesOf, makeSource, parseContent } from "./markdown-inline.js";

/**
 * Markdown to a tree, without the DOM: what cards are written in, and nothing that could carry markup. Raw HTML stays
 * text, an image is its alternative text, and only http and https addresses become links.
 *
 * Positions are UTF-16 indexes here; nodes carry code points.
 */

const MAX_DEPTH = 12;
const FENCE = /^(`{3,}(?=[^`]*$)|~{3,})/;
const HEADING = /^#{1,6}(?=[ \t]|$)/;
const MARKER = /^(?:([-+*])|([0-9]{1,9})([.)]))(?=[ \t]|$)/;
const DASHES = /^:?-+:?$/;
const ALIGNS = { ":-": "left", "-:": "right", "::": "center" };
/** The last one takes whatever is left. */
const READERS = [readFence, readHeading, readRule, readQuote, readList, readTable, readParagraph];

/** @param {string} text @returns {MarkdownDocument} */
export function parseMarkdown(text) {
  const source = makeSource(text);
  let next = 0;
  const lines = text.split("\n").map((line) => {
    const from = next;
    next += line.length + 1;
    return lineOf(source, from, next - (line.endsWith("\r") ? 2 : 1));
  });
  return { type: "document", children: parseBlocks({ source, lines, depth: 0 }) };
}

/** @param {string} text A piece of a paragraph. @returns {InlineNode[]} */
export function parseInline(text) {
  return parseContent(contentOf(makeSource(text), [{ from: 0, to: text.length }], ""));
}

function parseBlocks(frame) {
  const { source: { codePoints }, lines } = frame;
  const blocks = [];
  for (let at = skipBlank(frame, 0); at < lines.length; at = skipBlank(frame, at)) {
    let found = null;
    for (const read of READERS) if ((found = read(frame, at))) break;
    const { block, next } = found;
    blocks.push({ ...block, start: codePoints[lines[at].from], end: codePoints[lines[next - 1].to] });
    at = next;
  }
  return blocks;
}

function skipBlank({ lines }, at) {
  while (lines[at]?.words === "") at += 1;
  return at;
}

/** @returns {Line} */
function lineOf({ text }, from, to) {
  let columns = 0;
  let at = from;
  for (; at < to && isBlank(text[at]); at += 1) columns += widthOf(text[at]);
  return { from, to, at, columns, words: text.slice(at, to) };
}

function isBlank(char) {
  return char === " " || char === "\t";
}

function widthOf(char) {
  return char === "\t" ? 4 : 1;
}

/** A line with so much less of its indentation. */
function outdent(source, { from, to, at }, columns) {
  for (; columns > 0 && from < at; from += 1) columns -= widthOf(source.text[from]);
  return lineOf(source, from, to);
}

function trimmed({ text }, { from, to }) {
  while (from < to && isBlank(text[from])) from += 1;
  while (from < to && isBlank(text[to - 1])) to -= 1;
  return { from, to };
}

/** Whether words are one of some characters, over and over. */
function repeats(words, chars, least) {
  return words.length >= least && chars.includes(words[0]) && words === words[0].repeat(words.length);
}

function readFence({ source, lines }, at) {
  const { words, columns } = lines[at];
  const fence = FENCE.exec(words)?.[0];
  if (!fence) return null;
  let end = at + 1;
  while (end < lines.length && !repeats(lines[end].words.trimEnd(), fence[0], fence.length)) end += 1;
  const content = contentOf(source, lines.slice(at + 1, end).map((line) => outdent(source, line, columns)), "\n");
  const children = leavesOf(content, 0, content.text.length);
  return { block: { type: "fence", children }, next: Math.min(end + 1, lines.length) };
}

function readHeading({ source, lines }, at) {
  const line = lines[at];
  const marks = HEADING.exec(line.words)?.[0];
  if (!marks) return null;
  const { from, to } = trimmed(source, { from: line.at + marks.length, to: line.to });
  const { length } = source.text.slice(from, to).replace(/(^|[ \t])#+$/, "");
  const children = parseContent(contentOf(source, [trimmed(source, { from, to: from + length })], ""));
  return { block: { type: "heading", level: marks.length, children }, next: at + 1 };
}

function readRule({ lines }, at) {
  const isRule = repeats(lines[at].words.replace(/[ \t]+/g, ""), "-*_", 3);
  return isRule ? { block: { type: "rule" }, next: at + 1 } : null;
}

function readQuote({ source, lines, depth }, at) {
  const inside = [];
  for (let next = at; depth < MAX_DEPTH && lines[next]?.words[0] === ">"; next += 1) {
    const line = lines[next];
    inside.push(lineOf(source, line.at + (line.words[1] === " " ? 2 : 1), line.to));
  }
  if (inside.length === 0) return null;
  const children = parseBlocks({ source, lines: inside, depth: depth + 1 });
  return { block: { type: "quote", children }, next: at + inside.length };
}

function readList(frame, at) {
  const first = frame.depth < MAX_DEPTH ? markerOf(frame, at) : null;
  if (!first) return null;
  const children = [];
  let tight = true;
  let next = at;
  for (let marker = first; marker?.kind === first.kind; marker = nextMarker(frame, next, first)) {
    const begin = skipBlank(frame, next);
    if (begin > next && children.length > 0) tight = false;
    const item = readItemLines(frame, begin, marker);
    const blocks = parseBlocks({ ...frame, lines: item.lines, depth: frame.depth + 1 });
    if (blocks.filter(({ type }) => type === "paragraph").length > 1) tight = false;
    children.push({ type: "item", children: blocks });
    next = item.next;
  }
  return { block: { type: "list", ordered: first.ordered, first: first.number, tight, children }, next };
}

/** @returns {Marker | null} */
function markerOf({ source, lines }, at) {
  const { at: begin, to, columns, words } = lines[at];
  const [mark, bullet, number, sign] = MARKER.exec(words) ?? [];
  if (!mark) return null;
  const rest = lineOf(source, begin + mark.length, to);
  const empty = rest.words === "";
  const padding = empty || rest.columns > 4 ? 1 : rest.columns;
  return {
    kind: bullet ?? sign, ordered: !bullet, number: Number(number ?? 1), empty, columns, inside: columns + 2,
    text: columns + mark.length + padding, from: Math.min(rest.from + padding, rest.at),
  };
}

/** The marker that carries a list on after the blank lines at `next`, if there is one. */
function nextMarker(frame, next, first) {
  const at = skipBlank(frame, next);
  if (at >= frame.lines.length || readRule(frame, at)) return null;
  const marker = markerOf(frame, at);
  return marker && marker.columns < first.inside ? marker : null;
}

/** People indent nested items by two, three or four columns; two are enough here, whatever the marker's width. */
function readItemLines(frame, at, marker) {
  const { source, lines } = frame;
  const item = [lineOf(source, marker.from, lines[at].to)];
  let next = at + 1;
  for (let filled; (filled = skipBlank(frame, next)) < lines.length; next += 1) {
    const ends = () => filled > next || marker.empty || markerOf(frame, filled) || startsBlock(frame, filled);
    if (lines[filled].columns < marker.inside && ends()) break;
    for (; next < filled; next += 1) item.push(lines[next]);
    item.push(outdent(source, lines[filled], marker.text));
  }
  return { lines: item, next };
}

/** @param {Source} source @param {Span} line @returns {Content[]} Its cells; an escaped pipe is a pipe of the text. */
export function splitCells(source, line) {
  const { text } = source;
  const row = trimmed(source, line);
  const cells = [];
  let spans = [];
  let from = text[row.from] === "|" ? row.from + 1 : row.from;
  const endCell = (to) => {
    spans.push({ from, to });
    spans[0].from = trimmed(source, spans[0]).from;
    spans.at(-1).to = trimmed(source, spans.at(-1)).to;
    cells.push(contentOf(source, spans, ""));
    spans = [];
    from = to + 1;
  };
  for (let at = from; at < row.to; at += 1) {
    if (text[at] === "|") endCell(at);
    else if (text[at] === "\\" && (at += 1) < row.to && text[at] === "|") {
      spans.push({ from, to: at - 1 });
      from = at;
    }
  }
  if (from < row.to || spans.length > 0) endCell(row.to);
  return cells;
}

/** @param {string} text @returns {boolean} Whether it is a row of dashes, such as `| --- | :-: |`. */
export function isDashRow(text) {
  const cells = text.trim().replace(/^\||\|$/g, "").split("|");
  return text.includes("|") && cells.every((cell) => DASHES.test(cell.trim()));
}

function isTableStart({ lines }, at) {
  return at + 1 < lines.length && isDashRow(lines[at + 1].words) && lines[at].words.includes("|");
}

function readTable(frame, at) {
  if (!isTableStart(frame, at)) return null;
  const { source, lines } = frame;
  const aligns = splitCells(source, lines[at + 1]).map(({ text }) => ALIGNS[text[0] + text.at(-1)]);
  const rowAt = (index) => ({ type: "row", header: index === at, children: splitCells(source, lines[index]).map(
    (content, column) => ({ type: "cell", align: aligns[column] ?? null, children: parseContent(content) }),
  ) });
  const children = [rowAt(at)];
  let next = at + 2;
  for (; lines[next]?.words.includes("|"); next += 1) children.push(rowAt(next));
  return { block: { type: "table", children }, next };
}

/** Whether a line cannot merely carry on the paragraph before it. */
function startsBlock(frame, at) {
  const { words } = frame.lines[at];
  if (words === "" || words[0] === ">" || FENCE.test(words) || HEADING.test(words)) return true;
  if (readRule(frame, at) || isTableStart(frame, at)) return true;
  const marker = markerOf(frame, at);
  return marker !== null && !marker.empty && (!marker.ordered || marker.number === 1);
}

function readParagraph(frame, at) {
  const { source, lines } = frame;
  let next = at + 1;
  let level = 0;
  for (; next < lines.length; next += 1) {
    level = underlineLevel(lines[next].words.trimEnd());
    if (level > 0 || startsBlock(frame, next)) break;
  }
  const spans = lines.slice(at, next).map((line) => ({ from: line.at, to: line.to }));
  spans.push(trimmed(source, spans.pop()));
  const children = parseContent(contentOf(source, spans, "\n"));
  if (level > 0) return { block: { type: "heading", level, children }, next: next + 1 };
  return { block: { type: "paragraph", children }, next };
}

/** 1 or 2 for a line that makes a heading of the paragraph above it, else 0. */
function underlineLevel(words) {
  return repeats(words, "=", 2) ? 1 : Number(repeats(words, "-", 2)) * 2;
}
