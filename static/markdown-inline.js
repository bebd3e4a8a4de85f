import { webAddress } from "./links.js";
import { buildTree } from "./markdown-tree.js";
import { readDelimiters, forgetAfter } from "./markdown-emphasis.js";

/**
 * Inline Markdown in one pass from left to right: tokens first, paired as they come, made a tree at the end.
 * Every look ahead is prepared once or bounded, so hostile text costs no more than its length.
 *
 * @typedef {import("./markdown-source.js").Content} Content
 * @typedef {import("./markdown-tree.js").Token} Token
 * @typedef {import("./markdown-tree.js").InlineNode} InlineNode
 *
 * @typedef {object} Scan
 * @property {string} text
 * @property {number} at
 * @property {Token[]} tokens
 * @property {{"*": Token[], "_": Token[]}} openers Delimiter runs that may still open emphasis.
 * @property {{index: number, image: boolean}[]} brackets Those that may still begin a link.
 * @property {Map<number, number[]>} backticks Where runs of each length begin, the last one first.
 * @property {Int32Array} parentheses For each `(`, its partner, or -1.
 */

const SPECIAL = /[\\`*_![\]<\n]/g;
const ESCAPABLE = /[!-/:-@[-`{-~]/;
const MAX_TARGET = 2000;

/**
 * @param {Content} content
 * @returns {InlineNode[]}
 */
export function parseInline(content) {
  const { text } = content;
  const scan = {
    text, at: 0, tokens: [], openers: { "*": [], _: [] }, brackets: [],
    backticks: findBackticks(text), parentheses: matchParentheses(text),
  };
  while (scan.at < text.length) readNext(scan);
  return buildTree(content, scan.tokens);
}

/** @param {Scan} scan */
function readNext(scan) {
  const { text, at } = scan;
  switch (text[at]) {
    case "\\": return readEscape(scan);
    case "`": return readCode(scan);
    case "*": case "_": return readDelimiters(scan);
    case "!": return text[at + 1] === "[" ? openBracket(scan, true) : take(scan, "text", at, at + 1);
    case "[": return openBracket(scan, false);
    case "]": return closeBracket(scan);
    case "<": return readAutolink(scan);
    case "\n": return readLineEnd(scan);
    default:
  }
  SPECIAL.lastIndex = at;
  const found = SPECIAL.exec(text);
  return take(scan, "text", at, found ? found.index : text.length);
}

/**
 * Add a token for [from, to) and go on after it, or at `next`.
 *
 * @param {Scan} scan
 * @param {Token["kind"]} kind
 * @param {number} from
 * @param {number} to
 * @param {number} [next]
 */
function take(scan, kind, from, to, next = to) {
  scan.tokens.push({ kind, from, to });
  scan.at = next;
}

/** @param {Scan} scan */
function readEscape(scan) {
  const { text, at } = scan;
  if (text[at + 1] === "\n") take(scan, "break", at, at + 2);
  else if (at + 1 < text.length && ESCAPABLE.test(text[at + 1])) take(scan, "text", at + 1, at + 2);
  else take(scan, "text", at, at + 1);
}

/** @param {Scan} scan */
function readLineEnd(scan) {
  const { text, at } = scan;
  take(scan, text.endsWith("  ", at) && at > 2 ? "break" : "text", at, at + 1);
}

/** @param {Scan} scan */
function readCode(scan) {
  const { text, at } = scan;
  let inside = at;
  while (text[inside] === "`") inside += 1;
  const size = inside - at;
  const runs = scan.backticks.get(size) ?? [];
  while (runs.length > 0 && runs[runs.length - 1] < inside) runs.pop();
  if (runs.length === 0) return take(scan, "text", at, inside);
  const close = runs[runs.length - 1];
  const padded = close - inside > 2 && text[inside] === " " && text[close - 1] === " ";
  return take(scan, "code", padded ? inside + 1 : inside, padded ? close - 1 : close, close + size);
}

/**
 * @param {Scan} scan
 * @param {boolean} image
 */
function openBracket(scan, image) {
  scan.brackets.push({ index: scan.tokens.length, image });
  take(scan, "text", scan.at, scan.at + (image ? 2 : 1));
}

/** @param {Scan} scan */
function closeBracket(scan) {
  const bracket = scan.brackets.pop();
  const target = bracket ? readTarget(scan, scan.at + 1) : null;
  if (!target) return take(scan, "text", scan.at, scan.at + 1);
  forgetAfter(scan, bracket.index);
  const href = bracket.image ? null : webAddress(target.address);
  if (!bracket.image) scan.brackets.length = 0;
  scan.tokens[bracket.index].kind = href ? "open-link" : "nothing";
  scan.tokens[bracket.index].href = href;
  return take(scan, href ? "close-link" : "nothing", scan.at, target.end);
}

/**
 * @param {Scan} scan
 * @param {number} at Where `(address "title")` should begin.
 * @returns {{address: string, end: number} | null}
 */
function readTarget({ text, parentheses }, at) {
  const close = text[at] === "(" ? parentheses[at] : -1;
  if (close < 0 || close - at > MAX_TARGET) return null;
  const inside = text.slice(at + 1, close).trim();
  const space = inside.search(/\s/);
  const title = space < 0 ? "" : inside.slice(space).trim();
  if (title !== "" && !(title.length > 1 && `"'`.includes(title[0]) && title.endsWith(title[0]))) return null;
  const address = space < 0 ? inside : inside.slice(0, space);
  const bare = address.startsWith("<") && address.endsWith(">") ? address.slice(1, -1) : address;
  return { address: bare, end: close + 1 };
}

/** @param {Scan} scan */
function readAutolink(scan) {
  const { text, at } = scan;
  const length = text.slice(at + 1, at + MAX_TARGET).search(/[<>\s]/);
  const close = length + 1;
  const href = length > 0 && text[at + close] === ">" ? webAddress(text.slice(at + 1, at + close)) : null;
  if (!href) return take(scan, "text", at, at + 1);
  scan.tokens.push({ kind: "open-link", from: at, to: at + 1, href });
  take(scan, "text", at + 1, at + close);
  return take(scan, "close-link", at + close, at + close + 1);
}

/**
 * @param {string} text
 * @returns {Map<number, number[]>}
 */
function findBackticks(text) {
  const runs = new Map();
  for (const { 0: run, index } of text.matchAll(/`+/g)) {
    if (!runs.has(run.length)) runs.set(run.length, []);
    runs.get(run.length).push(index);
  }
  for (const starts of runs.values()) starts.reverse();
  return runs;
}

/**
 * @param {string} text
 * @returns {Int32Array}
 */
function matchParentheses(text) {
  const partners = new Int32Array(text.length).fill(-1);
  const open = [];
  for (let at = 0; at < text.length; at += 1) {
    if (text[at] === "(") open.push(at);
    else if (text[at] === ")" && open.length > 0) partners[open.pop()] = at;
  }
  return partners;
}
