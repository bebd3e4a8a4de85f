import { element } from "./dom.js";
import { labelOf, rangeOf } from "./statements.js";

/**
 * @param {Citation} citation
 * @param {string} id
 * @param {PageTools} tools
 * @returns {HTMLElement} A button that opens the card at the quote; without a known card, a mark that opens nothing.
 */
export function citationChip(citation, id, { words, openCard, preview }) {
  const { verdict } = citation;
  const name = words.say(verdict === "valid" ? "source.chip" : `source.chip.${verdict}`, citation);
  const attributes = { id, class: "chip", "data-testid": "chip", "data-verdict": verdict, "aria-label": name };
  const label = labelOf(citation);
  if (verdict === "unknown") return element("span", { ...attributes, role: "img", title: name }, label);
  const chip = element("button", {
    ...attributes, type: "button", click: () => openCard(targetOf(citation), chip),
  }, label);
  preview.attach(chip, citation, words);
  return chip;
}

/**
 * @param {Citation} citation
 * @returns {OpenTarget}
 */
export function targetOf(citation) {
  return { cardId: citation.card_id, range: rangeOf(citation), quote: citation.quote };
}
