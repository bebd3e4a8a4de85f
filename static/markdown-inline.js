import { webAddress } from "./links.js";
import { codePointOffsets } from "./spans.js";

/**
 * Inline Markdown in one pass from left to right: tokens first, paired as they come, made a tree at the end. Every look
 * ahead is prepared once or bounded, so hostile text costs no more than its length.
 */

const SPECIAL = /[\\`*_![\]<\n]/g;
const ESCAPABLE = /[!-/:-@[-`{-~]/;
const SPACE = /\s/;
const PUNCTUATION = /[\p{P}\p{S}]/u;
const MAX_TARGET = 2000;
const MAX_RUN = 3;
const LOOK_BACK = 8;
const MAX_DEPTH = 32;
const READERS = {
  "\\": readEscape, "\n": readLineEnd, "`": readCode, "*": readDelimiter, "_": readDelimiter, "!": openBracket,
  "[": openBracket, "]": closeBracket, "<": readAutolink,
};

/** @param {string} text @returns {Source} */
export function makeSource(text) {
  return { text, codePoints: codePointOffsets(text) };
}

/** @param {Source} source @param {Span[]} spans @param {"\n" | ""} joiner @returns {Content} */
export function contentOf(source, spans, joiner) {
  const positions = [];
  const parts = spans.map(({ from, to }, index) => {
    for (let at = from; at < to; at += 1) positions.push(at);
    if (joiner && index < spans.length - 1) positions.push(source.text.indexOf(joiner, to));
    return source.text.slice(from, to);
  });
  return { source, text: parts.join(joiner), positions };
}

/** @param {Content} content @param {number} from @param {number} to @returns {TextNode[]} Each unbroken in the source. */
export function leavesOf({ source, text, positions }, from, to) {
  /** @type {TextNode[]} */
  const leaves = [];
  for (let at = from; at < to; at += 1) {
    if (at + 1 < to && positions[at + 1] === positions[at] + 1) continue;
    const [start, end] = [source.codePoints[positions[from]], source.codePoints[positions[at] + 1]];
    leaves.push({ type: "text", text: text.slice(from, at + 1), start, end });
    from = at + 1;
  }
  return leaves;
}

/** @param {Content} content @returns {InlineNode[]} */
export function parseContent(content) {
  const { text } = content;
  /** @type {Scan} */
  const scan = {
    text, at: 0, tokens: [], openers: { "*": [], _: [] }, brackets: [],
    backticks: findBackticks(text), parentheses: matchParentheses(text),
  };
  while (scan.at < text.length) (READERS[text[scan.at]] ?? readWords)(scan);
  const tree = new Tree(content);
  for (const token of scan.tokens) tree.add(token);
  tree.flush();
  return tree.children;
}

/** Add a token for [from, to) and go on after it, or at `next`. */
function take(scan, kind, from, to, next = to) {
  scan.tokens.push({ kind, from, to });
  scan.at = next;
}

function readWords(scan) {
  SPECIAL.lastIndex = scan.at;
  take(scan, "text", scan.at, SPECIAL.exec(scan.text)?.index ?? scan.text.length);
}

function readEscape(scan) {
  const { text, at } = scan;
  const next = text[at + 1] ?? "";
  if (next === "\n") take(scan, "break", at, at + 2);
  else if (ESCAPABLE.test(next)) take(scan, "text", at + 1, at + 2);
  else take(scan, "text", at, at + 1);
}

function readLineEnd(scan) {
  const { text, at } = scan;
  take(scan, at > 2 && text.endsWith("  ", at) ? "break" : "text", at, at + 1);
}

function readCode(scan) {
  const { text, at } = scan;
  const from = runEnd(text, at);
  const size = from - at;
  const runs = scan.backticks[size] ?? [];
  while (runs.at(-1) < from) runs.pop();
  if (runs.length === 0) return take(scan, "text", at, from);
  const to = runs.at(-1);
  const padding = to - from > 2 && text[from] === " " && text[to - 1] === " " ? 1 : 0;
  return take(scan, "code", from + padding, to - padding, to + size);
}

function openBracket(scan) {
  const { text, at, tokens, brackets } = scan;
  const image = text[at] === "!";
  const size = image && text[at + 1] === "[" ? 2 : 1;
  if (!image || size === 2) brackets.push({ index: tokens.length, image });
  take(scan, "text", at, at + size);
}

function closeBracket(scan) {
  const { at, tokens, brackets } = scan;
  const bracket = brackets.pop();
  const target = bracket && readTarget(scan, at + 1);
  if (!target) return take(scan, "text", at, at + 1);
  forgetAfter(scan, bracket.index);
  const href = bracket.image ? null : webAddress(target.address);
  if (!bracket.image) brackets.length = 0;
  Object.assign(tokens[bracket.index], { kind: href ? "open-link" : "nothing", href });
  return take(scan, href ? "close-link" : "nothing", at, target.end);
}

/** The `(address "title")` that begins at `at`, or null. */
function readTarget({ text, parentheses }, at) {
  const close = parentheses[at];
  if (!close || close - at > MAX_TARGET) return null;
  const [, address, title] = /^(\S*)\s*(.*)$/s.exec(text.slice(at + 1, close).trim());
  if (title !== "" && !(title.length > 1 && `"'`.includes(title[0]) && title.endsWith(title[0]))) return null;
  return { address: /^<.*>$/.test(address) ? address.slice(1, -1) : address, end: close + 1 };
}

function readAutolink(scan) {
  const { text, at, tokens } = scan;
  const to = at + 1 + text.slice(at + 1, at + MAX_TARGET).search(/[<>\s]/);
  const href = text[to] === ">" ? webAddress(text.slice(at + 1, to)) : null;
  if (!href) return take(scan, "text", at, at + 1);
  tokens.push({ kind: "open-link", from: at, to: at + 1, href });
  take(scan, "text", at + 1, to);
  return take(scan, "close-link", to, to + 1);
}

/** A run of `*` or `_`: it closes what it can, and is kept if it may open something. */
function readDelimiter(scan) {
  const { text, at, tokens, openers } = scan;
  const to = runEnd(text, at);
  const length = to - at;
  const sides = flanks(text, at, to);
  take(scan, "text", at, to);
  if (length > MAX_RUN) return;
  const run = Object.assign(tokens.at(-1), {
    kind: "delimiter", char: text[at], index: tokens.length - 1, length, closes: 0, opens: [], ...sides,
  });
  if (run.canClose) closeWith(scan, run);
  if (run.canOpen && run.from < run.to) openers[run.char].push(run);
}

/** Only the nearest few openers are looked at, which keeps the whole linear. */
function closeWith(scan, closer) {
  const openers = scan.openers[closer.char];
  while (closer.from < closer.to) {
    const opener = openers.slice(-LOOK_BACK).reverse().find((run) => suits(run, closer));
    if (!opener) return;
    const size = Math.min(2, opener.to - opener.from, closer.to - closer.from);
    opener.opens.unshift(size);
    opener.to -= size;
    closer.closes += 1;
    closer.from += size;
    forgetAfter(scan, opener.index);
    if (opener.from === opener.to) openers.pop();
  }
}

/** CommonMark's "multiple of 3" rule, which keeps the single star of `**a*b**` from closing the double one. */
function suits(opener, closer) {
  const [one, other] = [opener.length, closer.length];
  return (!opener.canClose && !closer.canOpen) || (one + other) % 3 !== 0 || one % 3 === 0;
}

/** Drop every opener and bracket after a token, as what encloses them has just been closed. */
function forgetAfter({ openers, brackets }, index) {
  for (const stack of [openers["*"], openers._, brackets]) while (stack.at(-1)?.index > index) stack.pop();
}

/** What a run may do, by what stands on either side of it. */
function flanks(text, from, to) {
  const [before, after] = [text[from - 1] ?? " ", text[to] ?? " "];
  const [marksBefore, marksAfter] = [PUNCTUATION.test(before), PUNCTUATION.test(after)];
  const left = !SPACE.test(after) && (!marksAfter || SPACE.test(before) || marksBefore);
  const right = !SPACE.test(before) && (!marksBefore || SPACE.test(after) || marksAfter);
  const isStar = text[from] === "*";
  return { canOpen: left && (isStar || !right || marksBefore), canClose: right && (isStar || !left || marksAfter) };
}

function runEnd(text, at) {
  let to = at;
  while (text[to] === text[at]) to += 1;
  return to;
}

function findBackticks(text) {
  const runs = [];
  for (const { 0: { length }, index } of [...text.matchAll(/`+/g)].reverse()) (runs[length] ??= []).push(index);
  return runs;
}

function matchParentheses(text) {
  const partners = new Int32Array(text.length);
  const open = [];
  for (let at = 0; at < text.length; at += 1) {
    if (text[at] === "(") open.push(at);
    else if (text[at] === ")" && open.length > 0) partners[open.pop()] = at;
  }
  return partners;
}

/** Joins neighbouring text into one leaf, and stops nesting (though not reading) at a depth. */
class Tree {
  /** @type {InlineNode[]} */ children = [];
  /** @type {{children: InlineNode[]}[]} */ #stack = [this];
  #from = 0;
  #to = 0;

  constructor(content) {
    this.content = content;
  }

  add({ kind, from, to, href = null, closes = 0, opens = [] }) {
    if (kind === "break") this.#push({ type: "break" });
    if (kind === "code") this.#open({ type: "code", children: [] });
    if (kind === "open-link") this.#open({ type: "link", href, children: [] });
    for (; closes > 0; closes -= 1) this.#close();
    if (kind === "text" || kind === "code" || kind === "delimiter") this.#addText(from, to);
    for (const size of opens) this.#open({ type: size === 2 ? "strong" : "emphasis", children: [] });
    if (kind === "code" || kind === "close-link") this.#close();
  }

  flush() {
    for (const leaf of leavesOf(this.content, this.#from, this.#to)) this.#stack.at(-1).children.push(leaf);
    this.#from = this.#to;
  }

  #addText(from, to) {
    if (from >= to) return;
    if (from !== this.#to) {
      this.flush();
      this.#from = from;
    }
    this.#to = to;
  }

  #push(node) {
    this.flush();
    this.#stack.at(-1).children.push(node);
  }

  #open(node) {
    const tooDeep = this.#stack.length > MAX_DEPTH;
    if (!tooDeep) this.#push(node);
    this.#stack.push(tooDeep ? this.#stack.at(-1) : node);
  }

  #close() {
    this.flush();
    if (this.#stack.length > 1) this.#stack.pop();
  }
}
