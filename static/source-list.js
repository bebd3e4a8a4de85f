import { element } from "./dom.js";
import { cardFacts } from "./card-facts.js";
import { targetOf } from "./citation-chip.js";
import { plainQuote } from "./quote-parts.js";
import { sourcesOf } from "./statements.js";

/**
 * @typedef {import("./api.js").Citation} Citation
 * @typedef {import("./i18n.js").Words} Words
 * @typedef {import("./citation-chip.js").OpenCard} OpenCard
 */

/**
 * @param {Citation[]} citations
 * @param {Words} words
 * @param {OpenCard} openCard
 * @returns {HTMLElement | null} One entry a card with its quotes; null without a source.
 */
export function sourceList(citations, words, openCard) {
  const entries = sourcesOf(citations);
  if (entries.length === 0) return null;
  const items = entries.map((entry) => sourceItem(entry, words, openCard));
  return element("section", { class: "sources" },
    element("h3", {}, words.say("sources.title")),
    element("ol", {}, ...items));
}

function sourceItem({ number, cardId, citations }, words, openCard) {
  const [first] = citations;
  const open = (event) => openCard({ cardId, range: null }, event.currentTarget);
  const quotes = citations.map((citation) => element("li", {}, quoteLink(citation, words, openCard)));
  return element("li", { class: "source", "data-testid": "source" },
    element("span", { class: "source-number", "aria-hidden": "true" }, String(number)),
    element("div", {},
      element("button", { type: "button", class: "source-title", lang: first.language, click: open }, first.title),
      cardFacts(first, words),
      element("ul", { class: "quotes" }, ...quotes)));
}

function quoteLink(citation, words, openCard) {
  const quote = plainQuote(citation.quote);
  const verdict = citation.verdict === "valid" ? null
    : element("span", { class: "verdict" }, words.say(`source.verdict.${citation.verdict}`));
  if (!quote) return element("div", {}, verdict);
  const button = element("button", {
    type: "button", class: "quote-link", "aria-label": words.say("source.quote", { quote }),
    click: (event) => openCard(targetOf(citation), event.currentTarget),
  }, element("span", { class: "quote-words", lang: citation.language }, `«${quote}»`));
  return element("div", {}, button, verdict);
}
