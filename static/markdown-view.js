import { element } from "./dom.js";
import { cutAtRange } from "./spans.js";

/**
 * A Markdown tree as elements, one kind of node to one kind of element. Text enters as text.
 *
 * @typedef {object} ViewOptions
 * @property {{start: number, end: number} | null} range What to mark, in code points of the source.
 * @property {string} tableLabel What a screen reader calls a table that scrolls sideways.
 *
 * @typedef {import("./markdown.js").Block} Block
 * @typedef {import("./markdown-tree.js").InlineNode} InlineNode
 */

/** The page's own headings come before a card's. */
const HEADING_OFFSET = 2;
const TAGS = { emphasis: "em", strong: "strong", code: "code", paragraph: "p", quote: "blockquote" };

/**
 * @param {(Block | InlineNode)[]} nodes
 * @param {ViewOptions} options
 * @returns {Node[]}
 */
export function viewNodes(nodes, options) {
  return nodes.flatMap((node) => viewNode(node, options));
}

/**
 * @param {InlineNode[]} nodes
 * @returns {Node[]} Nothing marked.
 */
export function viewInline(nodes) {
  return viewNodes(nodes, { range: null, tableLabel: "" });
}

function viewNode(node, options) {
  const inside = () => viewNodes(node.children, options);
  switch (node.type) {
    case "text": return viewText(node, options.range);
    case "break": return [element("br")];
    case "rule": return [element("hr")];
    case "link": return [element("a", { href: node.href, rel: "noopener noreferrer", target: "_blank" }, ...inside())];
    case "heading": return [element(`h${Math.min(node.level + HEADING_OFFSET, 6)}`, {}, ...inside())];
    case "fence": return [element("pre", {}, element("code", {}, ...inside()))];
    case "list": return [viewList(node, options)];
    case "table": return [viewTable(node, options)];
    default: return [element(TAGS[node.type], {}, ...inside())];
  }
}

function viewText(leaf, range) {
  return cutAtRange(leaf, range).map(({ text, marked }) => (
    marked ? element("mark", { "data-testid": "card-quote" }, text) : document.createTextNode(text)
  ));
}

function viewList(list, options) {
  const start = list.ordered && list.first !== 1 ? String(list.first) : null;
  const items = list.children.map((item) => {
    const nodes = item.children.flatMap((block) => (
      list.tight && block.type === "paragraph" ? viewNodes(block.children, options) : viewNode(block, options)
    ));
    return element("li", {}, ...nodes);
  });
  return element(list.ordered ? "ol" : "ul", { start }, ...items);
}

function viewTable(table, options) {
  const rows = table.children.map((row) => element("tr", {}, ...row.children.map((cell) => element(
    row.header ? "th" : "td",
    { scope: row.header ? "col" : null, class: cell.align ? `align-${cell.align}` : null },
    ...viewNodes(cell.children, options),
  ))));
  const whole = element("table", {}, element("thead", {}, rows[0]), element("tbody", {}, ...rows.slice(1)));
  return element("div", { class: "table", role: "group", tabindex: "0", "aria-label": options.tableLabel }, whole);
}
