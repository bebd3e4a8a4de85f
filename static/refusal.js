import { element } from "./dom.js";

/**
 * @param {{reason: string, nearest: import("./api.js").CardTitle[]}} refusal
 * @param {import("./i18n.js").Words} words
 * @param {import("./citation-chip.js").OpenCard} openCard
 * @returns {HTMLElement} Why there is no answer, and which cards come nearest.
 */
export function refusalView({ reason, nearest }, words, openCard) {
  const key = words.has(`refusal.${reason}`) ? `refusal.${reason}` : "refusal.other";
  const advice = nearest.length > 0 ? "refusal.advice" : "refusal.advice.alone";
  const hope = reason === "no_cards" ? [] : [" ", words.say(advice)];
  return element("div", { class: "refusal", "data-testid": "refusal" },
    element("h3", {}, words.say("refusal.title")),
    element("p", {}, words.say(key), ...hope),
    nearest.length > 0 ? nearestCards(nearest, words, openCard) : null);
}

function nearestCards(nearest, words, openCard) {
  const items = nearest.map((card) => element("li", {}, element("button", {
    type: "button", class: "card-button", lang: card.language, "data-testid": "nearest",
    click: (event) => openCard({ cardId: card.card_id, range: null }, event.currentTarget),
  }, card.title)));
  return element("div", { class: "nearest" },
    element("h4", {}, words.say("refusal.nearest")),
    element("ul", { class: "card-buttons" }, ...items));
}
