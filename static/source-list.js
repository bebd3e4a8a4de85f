import { element } from "./dom.js";
import { cardFacts } from "./card-facts.js";
import { targetOf } from "./citation-chip.js";
import { plainQuote } from "./quote-parts.js";
import { formatRoute } from "./route.js";
import { sourcesOf } from "./statements.js";

/**
 * @param {Citation[]} citations
 * @param {number} turn
 * @param {PageTools} tools
 * @returns {HTMLElement | null} One entry a card with its quotes; null without a source.
 */
export function sourceList(citations, turn, tools) {
  const entries = sourcesOf(citations);
  if (entries.length === 0) return null;
  const items = entries.map((entry) => sourceItem(entry, `source-${turn}-${entry.number}`, tools));
  return element("section", { class: "sources" },
    element("h3", {}, tools.words.say("sources.title")),
    element("ol", {}, ...items));
}

function sourceItem({ number, cardId, citations }, id, tools) {
  const [first] = citations;
  const address = new URL(formatRoute({ cardId, range: null }), location.href).href;
  const title = element("button", {
    id, type: "button", class: "source-title", lang: first.language,
    click: () => tools.openCard({ cardId, range: null }, title),
  }, first.title);
  const quotes = citations.map((citation, at) => element("li", {}, quoteLink(citation, `${id}-${at}`, tools)));
  return element("li", { class: "source", "data-testid": "source" },
    element("span", { class: "source-number", "aria-hidden": "true" }, String(number)),
    element("div", {},
      title,
      element("p", { class: "address" }, address),
      cardFacts(first, tools.words),
      element("ul", { class: "quotes" }, ...quotes)));
}

function quoteLink(citation, id, { words, openCard }) {
  const quote = plainQuote(citation.quote);
  const verdict = citation.verdict === "valid" ? null
    : element("span", { class: "verdict" }, words.say(`source.verdict.${citation.verdict}`));
  if (!quote) return element("div", {}, verdict);
  const button = element("button", {
    id, type: "button", class: "quote-link", "aria-label": words.say("source.quote", { quote }),
    click: () => openCard(targetOf(citation), button),
  }, element("span", { class: "quote-words", lang: citation.language }, `«${quote}»`));
  return element("div", {}, button, verdict);
}
