import { contentOf, indentOf, leavesOf, linesOf, makeSource, outdent, trimmed } from "./markdown-source.js";
import { parseInline as parseContent } from "./markdown-inline.js";
import { isTableStart, readTable } from "./markdown-table.js";
import { markerOf, readItemLines, skipBlank } from "./markdown-list.js";

/**
 * Markdown to a tree, without the DOM: what cards are written in, and nothing that could carry markup. Raw HTML stays
 * text, an image is its alternative text, and only http and https addresses become links.
 *
 * @typedef {import("./markdown-source.js").Source} Source
 * @typedef {import("./markdown-source.js").Span} Span
 * @typedef {import("./markdown-tree.js").InlineNode} InlineNode
 *
 * @typedef {{type: "paragraph", children: InlineNode[]}
 *   | {type: "heading", level: number, children: InlineNode[]}
 *   | {type: "fence", children: import("./markdown-source.js").TextNode[]}
 *   | {type: "rule"}
 *   | {type: "quote", children: Block[]}
 *   | {type: "list", ordered: boolean, first: number, tight: boolean, children: Item[]}
 *   | import("./markdown-table.js").Table} BlockBody
 * @typedef {BlockBody & {start: number, end: number}} Block With its place in the source, in code points.
 * @typedef {{type: "item", children: Block[]}} Item
 *
 * @typedef {object} Frame What the readers of blocks share.
 * @property {Source} source
 * @property {Span[]} lines Of the container, without its prefix.
 * @property {number} depth
 */

const MAX_DEPTH = 12;
const FENCE = /^(`{3,}(?=[^`]*$)|~{3,})/;
const HEADING = /^#{1,6}(?=[ \t]|$)/;
/** @type {((frame: Frame, at: number) => {block: any, next: number} | null)[]} The last one takes whatever is left. */
const READERS = [readFence, readHeading, readRule, readQuote, readList, readTable, readParagraph];

/**
 * @param {string} text
 * @returns {{type: "document", children: Block[]}}
 */
export function parseMarkdown(text) {
  const source = makeSource(text);
  return { type: "document", children: parseBlocks({ source, lines: linesOf(source), depth: 0 }) };
}

/**
 * @param {string} text A piece of a paragraph.
 * @returns {InlineNode[]}
 */
export function parseInline(text) {
  return parseContent(contentOf(makeSource(text), [{ from: 0, to: text.length }], ""));
}

/**
 * @param {Frame} frame
 * @returns {Block[]}
 */
function parseBlocks(frame) {
  const { source, lines } = frame;
  /** @type {Block[]} */
  const blocks = [];
  for (let at = skipBlank(frame, 0); at < lines.length; at = skipBlank(frame, at)) {
    let found = null;
    for (const read of READERS) if ((found = read(frame, at))) break;
    const [start, end] = [source.codePoints[lines[at].from], source.codePoints[lines[found.next - 1].to]];
    blocks.push({ ...found.block, start, end });
    at = found.next;
  }
  return blocks;
}

/** A line's words, without its indentation. */
function wordsOf({ source, lines }, at) {
  return source.text.slice(indentOf(source, lines[at]).at, lines[at].to);
}

function readFence(frame, at) {
  const { source, lines } = frame;
  const fence = FENCE.exec(wordsOf(frame, at))?.[0];
  if (!fence) return null;
  let end = at + 1;
  while (end < lines.length && !closesFence(wordsOf(frame, end), fence)) end += 1;
  const { columns } = indentOf(source, lines[at]);
  const content = contentOf(source, lines.slice(at + 1, end).map((line) => outdent(source, line, columns)), "\n");
  const block = { type: "fence", children: leavesOf(content, 0, content.text.length) };
  return { block, next: Math.min(end + 1, lines.length) };
}

function closesFence(words, fence) {
  const bare = words.trimEnd();
  return bare.length >= fence.length && bare === fence[0].repeat(bare.length);
}

function readHeading(frame, at) {
  const { source, lines } = frame;
  const marks = HEADING.exec(wordsOf(frame, at))?.[0];
  if (!marks) return null;
  const span = trimmed(source, { from: indentOf(source, lines[at]).at + marks.length, to: lines[at].to });
  let to = span.to;
  while (to > span.from && source.text[to - 1] === "#") to -= 1;
  const closed = to === span.from || " \t".includes(source.text[to - 1]);
  const content = contentOf(source, [trimmed(source, { from: span.from, to: closed ? to : span.to })], "");
  return { block: { type: "heading", level: marks.length, children: parseContent(content) }, next: at + 1 };
}

function readRule(frame, at) {
  const marks = wordsOf(frame, at).replace(/[ \t]+/g, "");
  const isRule = marks.length >= 3 && "-*_".includes(marks[0]) && marks === marks[0].repeat(marks.length);
  return isRule ? { block: { type: "rule" }, next: at + 1 } : null;
}

function readQuote({ source, lines, depth }, at) {
  if (depth >= MAX_DEPTH) return null;
  const inside = [];
  let next = at;
  for (; next < lines.length; next += 1) {
    const { at: from } = indentOf(source, lines[next]);
    if (from === lines[next].to || source.text[from] !== ">") break;
    const after = from + 1;
    inside.push({ from: source.text[after] === " " && after < lines[next].to ? after + 1 : after, to: lines[next].to });
  }
  if (next === at) return null;
  return { block: { type: "quote", children: parseBlocks({ source, lines: inside, depth: depth + 1 }) }, next };
}

function readList(frame, at) {
  const first = frame.depth < MAX_DEPTH ? markerOf(frame, at) : null;
  if (!first) return null;
  const children = [];
  let tight = true;
  let next = at;
  for (let marker = first; marker && marker.kind === first.kind; marker = sameList(frame, next, first)) {
    const begin = skipBlank(frame, next);
    if (begin > next && children.length > 0) tight = false;
    const item = readItemLines(frame, begin, marker, (index) => markerOf(frame, index) || startsBlock(frame, index));
    const blocks = parseBlocks({ ...frame, lines: item.lines, depth: frame.depth + 1 });
    if (blocks.filter(({ type }) => type === "paragraph").length > 1) tight = false;
    children.push({ type: "item", children: blocks });
    next = item.next;
  }
  return { block: { type: "list", ordered: first.ordered, first: first.number, tight, children }, next };
}

/** The marker that carries a list on after the blank lines at `next`, if there is one. */
function sameList(frame, next, first) {
  const at = skipBlank(frame, next);
  if (at >= frame.lines.length || readRule(frame, at)) return null;
  const marker = markerOf(frame, at);
  return marker && marker.columns < first.inside ? marker : null;
}

/** Whether a line cannot merely carry on the paragraph before it. */
function startsBlock(frame, at) {
  const words = wordsOf(frame, at);
  if (words === "" || words[0] === ">" || FENCE.test(words) || HEADING.test(words)) return true;
  if (readRule(frame, at) || isTableStart(frame, at)) return true;
  const marker = markerOf(frame, at);
  return marker !== null && !marker.empty && (!marker.ordered || marker.number === 1);
}

function readParagraph(frame, at) {
  const { source, lines } = frame;
  let next = at + 1;
  let level = 0;
  while (next < lines.length && level === 0) {
    level = underlineLevel(wordsOf(frame, next));
    if (level === 0 && startsBlock(frame, next)) break;
    if (level === 0) next += 1;
  }
  const spans = lines.slice(at, next).map((line) => ({ from: indentOf(source, line).at, to: line.to }));
  spans.push(trimmed(source, spans.pop()));
  const children = parseContent(contentOf(source, spans, "\n"));
  if (level > 0) return { block: { type: "heading", level, children }, next: next + 1 };
  return { block: { type: "paragraph", children }, next };
}

/** 1 or 2 for a line that makes a heading of the paragraph above it, else 0. */
function underlineLevel(words) {
  const bare = words.trimEnd();
  if (bare.length < 2 || !"=-".includes(bare[0]) || bare !== bare[0].repeat(bare.length)) return 0;
  return bare[0] === "=" ? 1 : 2;
}
