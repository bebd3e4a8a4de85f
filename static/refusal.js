import { cardButtons } from "./card-buttons.js";
import { element } from "./dom.js";

/**
 * @param {Refusal} refusal
 * @param {number} turn
 * @param {PageTools} tools
 * @returns {HTMLElement} Why there is no answer, and which cards come nearest.
 */
export function refusalView({ reason, nearest }, turn, { words, openCard }) {
  const key = words.has(`refusal.${reason}`) ? `refusal.${reason}` : "refusal.other";
  const advice = nearest.length > 0 ? "refusal.advice" : "refusal.advice.alone";
  const hope = reason === "no_cards" ? [] : [" ", words.say(advice)];
  const cards = nearest.length === 0 ? null : element("div", { class: "nearest" },
    element("h4", {}, words.say("refusal.nearest")),
    cardButtons(nearest, `nearest-${turn}`, openCard));
  return element("div", { class: "refusal", "data-testid": "refusal" },
    element("h3", {}, words.say("refusal.title")),
    element("p", {}, words.say(key), ...hope),
    cards);
}
