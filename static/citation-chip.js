import { element } from "./dom.js";
import { plainQuote } from "./quote-parts.js";

/**
 * @typedef {import("./api.js").Citation} Citation
 * @typedef {import("./i18n.js").Words} Words
 * @typedef {(target: OpenTarget, opener: HTMLElement) => void} OpenCard
 *
 * @typedef {object} OpenTarget
 * @property {string} cardId
 * @property {{start: number, end: number} | null} range
 * @property {string} [quote] The words expected there.
 */

/**
 * @param {Citation} citation
 * @param {Words} words
 * @param {OpenCard} openCard
 * @returns {HTMLElement} A button that opens the card at the quote; without a known card, a mark that opens nothing.
 */
export function citationChip(citation, words, openCard) {
  const valid = citation.verdict === "valid";
  const name = words.say(valid ? "source.chip" : `source.chip.${citation.verdict}`, citation);
  const attributes = { class: "chip", "data-testid": "chip", "data-verdict": citation.verdict, "aria-label": name };
  const label = valid ? String(citation.number) : `${citation.number} ${citation.verdict === "weak" ? "≈" : "?"}`;
  if (citation.verdict === "unknown") return element("span", { ...attributes, role: "img", title: name }, label);
  return element("button", {
    ...attributes, type: "button", title: `${name}\n${plainQuote(citation.quote)}`,
    click: ({ currentTarget }) => openCard(targetOf(citation), /** @type {HTMLElement} */ (currentTarget)),
  }, label);
}

/**
 * @param {Citation} citation
 * @returns {OpenTarget}
 */
export function targetOf({ card_id: cardId, start, end, quote }) {
  const range = Number.isInteger(start) && Number.isInteger(end) && start < end ? { start, end } : null;
  return { cardId, range, quote };
}
