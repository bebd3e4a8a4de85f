import { leavesOf } from "./markdown-source.js";

/**
 * From paired tokens to a tree.
 *
 * @typedef {object} Token A stretch [from, to) of the content.
 * @property {"text" | "code" | "break" | "delimiter" | "open-link" | "close-link" | "nothing"} kind
 * @property {number} from
 * @property {number} to
 * @property {string | null} [href]
 * @property {number} [index] A delimiter's place among the tokens; the rest is for delimiters alone, too.
 * @property {string} [char]
 * @property {boolean} [canOpen]
 * @property {boolean} [canClose]
 * @property {number} [left] Its characters not yet paired: they stay text.
 * @property {number[]} [opens] What it opens, the innermost first: 1 is emphasis, 2 strong.
 * @property {number[]} [closes] What it closes, the innermost first.
 *
 * @typedef {import("./markdown-source.js").TextNode
 *   | {type: "break"}
 *   | {type: "emphasis" | "strong" | "code", children: InlineNode[]}
 *   | {type: "link", href: string, children: InlineNode[]}} InlineNode
 */

const MAX_DEPTH = 32;

/**
 * @param {import("./markdown-source.js").Content} content
 * @param {Token[]} tokens
 * @returns {InlineNode[]}
 */
export function buildTree(content, tokens) {
  const builder = new TreeBuilder(content);
  for (const token of tokens) addToken(builder, token);
  return builder.finish();
}

/**
 * @param {TreeBuilder} builder
 * @param {Token} token
 */
function addToken(builder, token) {
  const { kind, from, to } = token;
  if (kind === "text") builder.text(from, to);
  else if (kind === "break") builder.leaf({ type: "break" });
  else if (kind === "delimiter") addDelimiter(builder, token);
  else if (kind === "open-link") builder.open({ type: "link", href: token.href, children: [] });
  else if (kind === "close-link") builder.close();
  else if (kind === "code") {
    builder.open({ type: "code", children: [] });
    builder.text(from, to);
    builder.close();
  }
}

/**
 * @param {TreeBuilder} builder
 * @param {Token} token
 */
function addDelimiter(builder, { from, left, opens, closes }) {
  for (const _ of closes) builder.close();
  const begin = from + closes.reduce((sum, size) => sum + size, 0);
  builder.text(begin, begin + left);
  for (const size of [...opens].reverse()) builder.open({ type: size === 2 ? "strong" : "emphasis", children: [] });
}

/** Joins neighbouring text into one leaf, and stops nesting (though not reading) at a depth. */
class TreeBuilder {
  /** @param {import("./markdown-source.js").Content} content */
  constructor(content) {
    this.content = content;
    this.stack = [{ children: [] }];
    this.tooDeep = 0;
    this.run = { from: 0, to: 0 };
  }

  text(from, to) {
    if (from >= to) return;
    if (this.run.to !== from) this.flush();
    this.run = { from: this.run.from < this.run.to ? this.run.from : from, to };
  }

  leaf(node) {
    this.flush();
    this.stack[this.stack.length - 1].children.push(node);
  }

  open(node) {
    this.flush();
    if (this.stack.length > MAX_DEPTH) {
      this.tooDeep += 1;
      return;
    }
    this.stack[this.stack.length - 1].children.push(node);
    this.stack.push(node);
  }

  close() {
    this.flush();
    if (this.tooDeep > 0) this.tooDeep -= 1;
    else if (this.stack.length > 1) this.stack.pop();
  }

  finish() {
    this.flush();
    return this.stack[0].children;
  }

  flush() {
    const { from, to } = this.run;
    this.run = { from: 0, to: 0 };
    for (const leaf of leavesOf(this.content, from, to)) this.stack[this.stack.length - 1].children.push(leaf);
  }
}
