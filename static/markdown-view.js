import { element } from "./dom.js";
import { cutAtRange } from "./spans.js";

/** A Markdown tree as elements, one kind of node to one kind of element. Text enters as text. */

/** The page's own headings come before a card's. */
const HEADING_OFFSET = 2;
const TAGS = {
  emphasis: "em", strong: "strong", code: "code", paragraph: "p", quote: "blockquote", break: "br", rule: "hr",
};

/** @param {(Block | InlineNode)[]} nodes @param {ViewOptions} options @returns {Node[]} */
export function viewNodes(nodes, options) {
  return nodes.flatMap((node) => viewNode(node, options));
}

/** @param {InlineNode[]} nodes @returns {Node[]} Nothing marked. */
export function viewInline(nodes) {
  return viewNodes(nodes, { range: null, tableLabel: "" });
}

function viewNode(node, options) {
  const view = (tag, attributes = {}) => element(tag, attributes, ...viewNodes(node.children ?? [], options));
  switch (node.type) {
    case "text": return viewText(node, options.range);
    case "link": return view("a", { href: node.href, rel: "noopener noreferrer", target: "_blank" });
    case "heading": return view(`h${Math.min(node.level + HEADING_OFFSET, 6)}`);
    case "fence": return element("pre", {}, view("code"));
    case "list": return viewList(node, options);
    case "table": return viewTable(node, options);
    default: return view(TAGS[node.type]);
  }
}

function viewText(leaf, range) {
  return cutAtRange(leaf, range).map(({ text, marked }) => (
    marked ? element("mark", { "data-testid": "card-quote" }, text) : document.createTextNode(text)
  ));
}

function viewList({ ordered, first, tight, children }, options) {
  const inside = (block) => (
    tight && block.type === "paragraph" ? viewNodes(block.children, options) : viewNode(block, options)
  );
  const items = children.map((item) => element("li", {}, ...item.children.flatMap(inside)));
  return element(ordered ? "ol" : "ul", { start: ordered && first !== 1 ? String(first) : null }, ...items);
}

function viewTable(table, options) {
  const rows = table.children.map(({ header, children }) => element("tr", {}, ...children.map((cell) => element(
    header ? "th" : "td",
    { scope: header ? "col" : null, class: cell.align && `align-${cell.align}` },
    ...viewNodes(cell.children, options),
  ))));
  const whole = element("table", {}, element("thead", {}, rows[0]), element("tbody", {}, ...rows.slice(1)));
  return element("div", { class: "table", role: "group", tabindex: "0", "aria-label": options.tableLabel }, whole);
}
