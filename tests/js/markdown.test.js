import assert from "node:assert/strict";
import { test } from "node:test";
import { stepHeadings } from "../../static/headings.js";
import { parseInline, parseMarkdown } from "../../static/markdown.js";
import { sliceCodePoints } from "../../static/spans.js";

/** The shape of a tree in one line: `p(Hola strong(mundo))`. */
function shape(nodes) {
  const short = { paragraph: "p", emphasis: "em", quote: "quote", item: "li", cell: "td", row: "tr" };
  return nodes.map((node) => {
    if (node.type === "text") return node.text;
    return `${short[node.type] ?? node.type}${node.level ?? ""}(${shape(node.children ?? [])})`;
  }).join("");
}

const blocks = (text) => shape(parseMarkdown(text).children);
const inline = (text) => shape(parseInline(text));

function leaves(node) {
  return node.type === "text" ? [node] : (node.children ?? []).flatMap(leaves);
}

const SHAPES = [
  ["a heading loses its marks at both ends", "## Dosis **diaria** ##", "heading2(Dosis strong(diaria))"],
  ["a hash without a space is text", "#dosis", "p(#dosis)"],
  ["an underlined paragraph is a heading", "Dosis\n=====", "heading1(Dosis)"],
  ["lines of a paragraph stay together", "uno\ndos\n\ntres", "p(uno\ndos)p(tres)"],
  ["three dashes alone are a rule", "a\n\n---\n\nb", "p(a)rule()p(b)"],
  ["a starred rule is no list", "* * *", "rule()"],
  ["a quote may hold a list", "> a\n>\n> - b", "quote(p(a)list(li(p(b))))"],
  ["a list nests by two columns", "- a\n  - b\n- c", "list(li(p(a)list(li(p(b))))li(p(c)))"],
  ["a numbered list nests and goes on", "1. a\n   1. b\n2. c", "list(li(p(a)list(li(p(b))))li(p(c)))"],
  ["an item's wrapped line belongs to it", "- a\nb", "list(li(p(a\nb)))"],
  ["a number in running text begins no list", "Son\n14. Nada más", "p(Son\n14. Nada más)"],
  ["a fence keeps its marks as text", "```js\n**a**\n```\nb", "fence(**a**)p(b)"],
  ["an unclosed fence runs to the end", "~~~\na\n\n# b", "fence(a\n\n# b)"],
  ["a table has rows and cells", "| A | B |\n|---|:-:|\n| 1 | *2* |", "table(tr(td(A)td(B))tr(td(1)td(em(2))))"],
  ["an escaped pipe stays in its cell", "| A |\n|---|\n| 1 \\| 2 |", "table(tr(td(A))tr(td(1 | 2)))"],
  ["pipes without dashes below are text", "a | b\nc | d", "p(a | b\nc | d)"],
  ["raw HTML stays text", "<script>alert(1)</script>", "p(<script>alert(1)</script>)"],
];

for (const [name, text, expected] of SHAPES) test(name, () => assert.equal(blocks(text), expected));

const INLINE = [
  ["emphasis nests", "*a **b** c*", "em(a strong(b) c)"],
  ["three stars are both kinds", "***a***", "em(strong(a))"],
  ["stars among spaces are stars", "2 * 3 * 4", "2 * 3 * 4"],
  ["underscores inside a word are underscores", "snake_case_name", "snake_case_name"],
  ["a single star does not close a double one", "**a*b**", "strong(a*b)"],
  ["code keeps stars and needs a fence of its own length", "``a ` *b*``", "code(a ` *b*)"],
  ["an unclosed backtick is a backtick", "a ` b", "a ` b"],
  ["a backslash makes a mark plain", "\\*a\\*", "*a*"],
  ["an image is its alternative text", "![un *gráfico*](https://e.org/a.png)", "un em(gráfico)"],
  ["crossing marks do not cross in the tree", "*a [b* c](https://e.org)", "em(a [b) c](https://e.org)"],
];

for (const [name, text, expected] of INLINE) test(name, () => assert.equal(inline(text), expected));

test("http and https addresses become links", () => {
  for (const text of ["[a](https://e.org/x_(y) \"t\")", "[a](<http://e.org>)", "<https://e.org/b>"]) {
    assert.equal(parseInline(text)[0].type, "link", text);
  }
});

test("any other address leaves the label as text", () => {
  for (const address of [
    "javascript:alert(1)", "JaVaScRiPt:alert(1)", "data:text/html,x", "vbscript:x", "//e.org", "/cards/a",
    "mailto:a@b.c", "\u0001javascript:alert(1)", "https://", "http:e.org",
  ]) assert.deepEqual(parseInline(`[aquí](${address})`), [{ type: "text", text: "aquí", start: 1, end: 5 }], address);
});

test("every leaf is exactly its stretch of the source, whatever the characters", () => {
  const text = [
    "# 😀 Título", "", "Dosis de **cafe\u0301** 𝒳 y `a\u00adb`", "otra *línea", "más*\\*", "", "- 👩‍⚕️ uno", "  - dos",
    "    sigue", "", "| A | B |", "|---|---|", "| 😀 x \\| y | n\u0303 |", "", "> > [z](https://e.org) ![w](v)", "",
    "```", "𝒳", "```", "",
  ].join("\r\n");
  const all = leaves(parseMarkdown(text));
  assert.ok(all.length > 15);
  for (const leaf of all) assert.equal(sliceCodePoints(text, leaf.start, leaf.end), leaf.text);
  for (let at = 1; at < all.length; at += 1) assert.ok(all[at - 1].end <= all[at].start);
});

test("heading levels leave no gap", () => {
  const stepped = stepHeadings(parseMarkdown("## a\n#### b\n### c\n# d\n## e").children);
  assert.deepEqual(stepped.map(({ level }) => level), [1, 2, 2, 1, 2]);
});

test("a gap in a list may be longer than a call has room for arguments", () => {
  assert.equal(blocks(`- a\n${"\n".repeat(300_000)}  b`), "list(li(p(a)p(b)))");
});

test("a tree stays shallow however deep the marks nest", () => {
  const depth = (node) => 1 + Math.max(0, ...(node.children ?? []).map(depth));
  for (const text of [`${"*a ".repeat(5000)}${"a* ".repeat(5000)}`, "> ".repeat(5000), "- ".repeat(5000)]) {
    assert.ok(depth(parseMarkdown(text)) < 80);
  }
});

const HOSTILE = [
  "[", "]", "*", "`", "<", "_*", "**a ", "*a_ ", "***a** ", "`` ` ", "![", "[](", "([)](", "[a](b ", "[[]]", "<http", "\\|",
  "> ", "- ", "- a\n", "1. a\n\n", "  - x\n\n", "- a\n  - b\n", "|", "|a\n|-\n", "| a | b |\n", "~~~\n", "```\n",
  "# ", "\n", "\t", "(", "&",
];

/**
 * Milliseconds of processor time that parsing `length` characters takes: what else runs on the machine is not in it.
 *
 * @param {string} piece
 * @param {number} length
 */
function parsingCost(piece, length) {
  const text = piece.repeat(Math.ceil(length / piece.length));
  const before = process.cpuUsage();
  parseMarkdown(text);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

for (const piece of HOSTILE) {
  test(`the cost of ${JSON.stringify(piece)} over and over grows with its length, not with the square of it`, () => {
    const attempts = [];
    // Eight times the text: 8 times the work if linear, 64 if quadratic. A collection of garbage can fall on either
    // half, so one fair attempt of several is enough: a quadratic parser has none.
    for (let attempt = 0; attempt < 6; attempt += 1) {
      const [short, long] = [parsingCost(piece, 15_000), parsingCost(piece, 120_000)];
      if (long < 100 || long < short * 24) return;
      attempts.push(`${short.toFixed(0)} ms, then ${long.toFixed(0)} ms`);
    }
    assert.fail(attempts.join("; "));
  });
}
