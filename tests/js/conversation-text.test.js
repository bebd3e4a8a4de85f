import assert from "node:assert/strict";
import { test } from "node:test";
import { answerAsMarkdown, conversationAsJson, conversationAsMarkdown } from "../../static/conversation-text.js";
import { wordsIn } from "../../static/i18n.js";
import { parseMarkdown } from "../../static/markdown.js";

const ES = wordsIn("es");
const EN = wordsIn("en");
const PAGE = "https://box.example/";

const said = (text, language = "es") => ({ type: "text", text, language });
const cited = (citation, number = citation + 1) => ({ type: "citation", citation, number, card_id: `card-${number}` });

function citation(number, quote, more = {}) {
  return {
    number, card_id: `card-${number}`, title: `Ficha ${number}`, language: "es", license: "CC0-1.0", source: "synthetic",
    accessed_at: "2026-11-30", quote, start: 3, end: 3 + quote.length, verdict: "valid", ...more,
  };
}

function answer(segments, citations, more = {}) {
  return {
    question: "¿Con comida?", language: "es", mode: "extractive", degraded: false, segments, citations, refusal: null,
    ...more,
  };
}

const lineWith = (text, part) => text.split("\n").find((line) => line.includes(part));

test("an extractive answer is a question, a statement a line, and its sources", () => {
  const quotes = [citation(1, "Tome agua."), citation(2, "- Coma *algo*.", { start: 0, end: 14, language: "en" })];
  const segments = [said("Tome agua."), cited(0), said("- Coma *algo*."), cited(1)];
  const text = answerAsMarkdown(answer(segments, quotes), ES, PAGE);
  assert.equal(text, `## ¿Con comida?

> Las frases en inglés se citan tal como están en su ficha, sin traducir.

Tome agua. [1]

Coma algo. [2]

### Fuentes

- [1] [Ficha 1](https://box.example/#/card/card-1?s=3&e=13) · Español · Licencia CC0-1.0 · Origen: contenido de ejemplo \
· Consultada el 30 de noviembre de 2026
  - «Tome agua.»
- [2] [Ficha 2](https://box.example/#/card/card-2?s=0&e=14) · Inglés · Licencia CC0-1.0 · Origen: contenido de ejemplo \
· Consultada el 30 de noviembre de 2026
  - «Coma algo.»
`);
});

test("an answer in prose stays in one paragraph, with a full stop kept at its sentence", () => {
  const segments = [said("Uno "), cited(0), said(". Dos."), cited(0), cited(1), said("\n\nTres.")];
  const text = answerAsMarkdown(answer(segments, [citation(1, "a"), citation(2, "b")], { mode: "llm" }), ES, PAGE);
  assert.equal(text.split("\n\n")[1], `> ${ES.say("answer.written")}`);
  assert.equal(text.split("\n\n")[2], "Uno [1]. Dos. [1] [2] Tres.");
});

test("lines and table rows of one quote stand as on the page", () => {
  const text = answerAsMarkdown(answer([said("## Dosis\n| A | **B** |\n|---|---|\n1. Uno"), cited(0)], []), ES, PAGE);
  assert.equal(text, "## ¿Con comida?\n\nDosis\\\nA · B\\\nUno\n");
});

test("a citation that does not hold says so beside its sentence and among the sources", () => {
  const quotes = [
    citation(1, "a", { verdict: "weak" }), citation(2, "", { verdict: "unsupported", start: 0, end: 0 }),
    citation(3, "", { verdict: "unknown" }),
  ];
  const text = answerAsMarkdown(answer([said("Uno."), cited(0), cited(1), cited(2), cited(9)], quotes), EN, PAGE);
  assert.equal(text.split("\n\n")[1], "Uno. [1 ≈] [2 ?] [3 ?]");
  assert.ok(text.includes("\n  - «a» — Weak support: check the sentence in the card.\n"));
  assert.ok(text.endsWith("\n  - The card does not support the sentence marked with “?”.\n"));
  assert.ok(lineWith(text, "[Ficha 2]").includes("(https://box.example/#/card/card-2)"));
  assert.ok(!text.includes("Ficha 3"));
});

test("one source has all quotes of its card, and leads to the first", () => {
  const quotes = [citation(1, "uno"), citation(1, "dos", { start: 90, end: 93 })];
  const text = answerAsMarkdown(answer([said("uno"), cited(0), said("dos"), cited(1, 1)], quotes), ES, PAGE);
  assert.ok(text.includes("card-1?s=3&e=6)"));
  assert.ok(text.endsWith("\n  - «uno»\n  - «dos»\n"));
});

test("what is not known of a card is left out, and a web address is a link", () => {
  const bare = { license: null, source: "https://e.org/a_(b)", accessed_at: null, language: "fr" };
  const text = answerAsMarkdown(answer([said("a"), cited(0)], [citation(1, "a", bare)]), ES, PAGE);
  assert.ok(lineWith(text, "Ficha 1").endsWith("s=3&e=4) · fr · <https://e.org/a_(b)>"));
});

test("a degraded answer says so first", () => {
  const text = answerAsMarkdown(answer([said("a")], [], { degraded: true }), EN, PAGE);
  assert.ok(text.startsWith("## ¿Con comida?\n\n> Shortened answer: "));
});

test("a refusal says why, and leads to the nearest cards", () => {
  const refused = (reason, nearest) => answerAsMarkdown(answer([], [], { refusal: { reason, nearest } }), EN, PAGE);
  assert.equal(refused("no_evidence", [{ card_id: "agua", title: "Agua", language: "es" }]), `## ¿Con comida?

### The cards do not say

There is no card about this.

#### The nearest there is

- [Agua](https://box.example/#/card/agua)
`);
  assert.ok(refused("something_new", []).endsWith("\n\nThe cards do not allow an answer to this question.\n"));
});

test("a conversation has a title, a date, its answers in order and the page's note", () => {
  const answers = ["uno", "dos"].map((question) => answer([said("a")], [], { question }));
  const text = conversationAsMarkdown(answers, EN, { pageUrl: PAGE, date: "2026-11-30T10:20:30Z" });
  assert.ok(text.startsWith(`# ${EN.say("page.title.ask")}\n\nNovember 30, 2026\n\n## uno\n\na\n\n## dos\n`));
  assert.ok(text.endsWith(`\n\n---\n\n${EN.say("page.note")}\n`));
});

test("as JSON a conversation is what was received, and when and where it was kept", () => {
  const answers = [answer([said("«😀»\u2028")], [citation(1, "a")], { unheard_of: [1, null] })];
  const text = conversationAsJson(answers, { pageUrl: PAGE, date: "2026-11-30T10:20:30Z" });
  assert.deepEqual(JSON.parse(text), { exported_at: "2026-11-30T10:20:30Z", page: PAGE, answers });
  assert.ok(text.startsWith("{\n  \"exported_at\""));
});

const HOSTILE = [
  "[a](https://evil.example)", "![a](https://evil.example/x.png)", "<img src=x onerror=alert(1)>",
  "<script>alert(1)</script>", "<https://evil.example>", "https://evil.example/a_b", "www.evil.example",
  "a@evil.example", "a\n# b", "a\r\n\r\n## b", "# b", "a\n===", "a\n---", "===", "---", "***", "- a", "+ a", "* a",
  "1. a", "12) a", "> a", "```\na", "~~~", "    a", "\ta", "[1]: https://evil.example", "//evil.example", "a]: b",
  "a](https://evil.example)", "a](<b>)", "| a |\n|---|\n| b |", "a\\", "\\[a](https://e.org)", "`a`", "``a` b@c.d`",
  "a`b@c.d``e@f.g`", "*a*", "_a_", "~~a~~", "&lt;b&gt;", "&#60;b&#62;", "(https://evil.example)", ": a", "[a][1]",
  "[^1]", "a  ", "a ##", "javascript:alert(1)", "", "-", "1.",
];

/** What a reader of Markdown makes of it: headings, links and anything but plain words, with their text. */
function madeOf(node) {
  const wordsOf = ({ text, children = [] }) => text ?? children.map(wordsOf).join("");
  const own = ["paragraph", "text", "item", "document", "code"].includes(node.type) ? [] : [
    { type: node.type, level: node.level, href: node.href, text: node.href || node.level ? wordsOf(node) : undefined },
  ];
  return [...own, ...(node.children ?? []).flatMap(madeOf)];
}

/** The text's structure by our own parser, which also knows what is no link to it but is one to others. */
function structure(text) {
  const tree = parseMarkdown(text);
  const plainText = ({ type, text: words, children = [] }) => (
    type === "text" ? [words] : ["code", "link"].includes(type) ? [] : children.flatMap(plainText)
  );
  for (const words of plainText(tree)) assert.doesNotMatch(words, /\/\/|www\.|@/);
  return madeOf(tree);
}

for (const evil of HOSTILE) {
  test(`${JSON.stringify(evil)} is plain words in the file, wherever it stands`, () => {
    const shown = (question, title, source, license) => {
      const quoted = citation(1, "a", { title, source, license });
      const refusal = { reason: "no_evidence", nearest: [{ card_id: "agua", title, language: "es" }] };
      return structure(conversationAsMarkdown(
        [answer([said("a"), cited(0)], [quoted], { question }), answer([], [], { question, refusal })],
        ES, { pageUrl: PAGE, date: "2026-11-30" },
      ));
    };
    const [harmless, hostile] = [shown("Q", "T", "S", "L"), shown(evil, evil, `x ${evil}`, evil)];
    const line = evil.replace(/[\n\r]+/g, " ").trim();
    const same = (text) => (text === "Q" || text === "T" ? line : text);
    assert.deepEqual(hostile, harmless.map((node) => ({ ...node, text: same(node.text) })));
  });
}

test("a sentence from a card begins nothing, and no label before it becomes a link", () => {
  for (const evil of HOSTILE) {
    const segments = [said(`x ${evil}`), cited(0), said(evil), cited(0)];
    for (const mode of ["llm", "extractive"]) {
      const text = answerAsMarkdown(answer(segments, [citation(1, evil)], { mode, question: "Q" }), ES, PAGE);
      const made = structure(text).filter(({ type }) => type !== "break");
      assert.deepEqual(made.map((node) => node.text ?? node.type), [
        "Q", ...(mode === "llm" ? ["quote"] : []), "Fuentes", "list", "Ficha 1", ...(evil ? ["list"] : []),
      ], text);
    }
  }
});
