import { element } from "./dom.js";
import { cardFacts } from "./card-facts.js";
import { stepHeadings } from "./headings.js";
import { parseMarkdown } from "./markdown.js";
import { viewNodes } from "./markdown-view.js";
import { locateQuote } from "./spans.js";

/**
 * @param {Card} card
 * @param {OpenTarget} target
 * @param {Words} words
 * @returns {Node[]} What is known of the card, then its text with the quote marked.
 */
export function cardView(card, target, words) {
  const wanted = target.range !== null || target.quote !== undefined;
  const range = wanted ? locateQuote(card.text, target.range, target.quote) : null;
  const blocks = stepHeadings(withoutTitle(parseMarkdown(card.text).children, card.title, range));
  const body = viewNodes(blocks, { range, tableLabel: words.say("card.table") });
  return [
    cardFacts(card, words),
    wanted && !range ? element("p", { class: "note" }, words.say("card.moved")) : null,
    element("div", { class: "card-text", lang: card.language }, ...body),
  ].filter((node) => node !== null);
}

/** A first heading that repeats the card's title says nothing new, unless it is what was quoted. */
function withoutTitle(blocks, title, range) {
  const [first, ...rest] = blocks;
  if (first?.type !== "heading" || (range && range.start < first.end)) return blocks;
  const [only, ...others] = first.children;
  return others.length === 0 && only?.text === title ? rest : blocks;
}
