import { element } from "./dom.js";

/**
 * @param {CardTitle[]} cards
 * @param {string} name Their test id, and the beginning of their ids.
 * @param {OpenCard} openCard
 * @returns {HTMLElement} A list of buttons that open them.
 */
export function cardButtons(cards, name, openCard) {
  const items = cards.map(({ card_id: cardId, title, language }) => {
    const button = element("button", {
      id: `${name}-${cardId}`, type: "button", class: "card-button", lang: language, "data-testid": name.split("-")[0],
      click: () => openCard({ cardId, range: null }, button),
    }, title);
    return element("li", {}, button);
  });
  return element("ul", { class: "card-buttons" }, ...items);
}
