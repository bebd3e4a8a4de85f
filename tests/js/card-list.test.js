import assert from "node:assert/strict";
import { test } from "node:test";
import { filterCards, foldText, groupByTopic, topicsOf } from "../../static/card-list.js";

const card = (title, topics, questions) => ({ card_id: title, title, language: "es", topics, questions });
const titles = (cards) => cards.map(({ title }) => title);

const CARDS = [
  card("Jarabe para la tos", ["niños", "formas"], ["¿Cuánto jarabe es una cucharada?"]),
  card("Viajar con medicación", ["viajes"], []),
  card("Parches", ["formas"]),
  card("Sin tema", []),
];

test("accents and capitals do not tell words apart, composed or not", () => {
  assert.equal(foldText("ÁRBOL Ñu pingu\u0308ino İ"), "arbol nu pinguino i");
  assert.equal(foldText("cafe\u0301"), foldText("CAFÉ"));
});

test("topics are counted by cards, the most frequent first and equals by name", () => {
  assert.deepEqual(topicsOf([...CARDS, card("x", ["viajes", "viajes"]), card("y", ["área"])]), [
    { topic: "formas", count: 2 }, { topic: "viajes", count: 2 }, { topic: "área", count: 1 },
    { topic: "niños", count: 1 },
  ]);
});

test("every word must occur, wherever in title, topics and questions it does", () => {
  assert.deepEqual(titles(filterCards(CARDS, { text: " NINOS cucharada\u00a0tos" })), ["Jarabe para la tos"]);
  assert.deepEqual(titles(filterCards(CARDS, { text: "formas" })), ["Jarabe para la tos", "Parches"]);
  assert.deepEqual(filterCards(CARDS, { text: "jarabe viajes" }), []);
  assert.deepEqual(filterCards(CARDS, { text: ".*" }), []);
});

test("a topic and words both hold, and nothing wanted keeps every card in its order", () => {
  assert.deepEqual(titles(filterCards(CARDS, { topic: "formas", text: "par" })), ["Jarabe para la tos", "Parches"]);
  assert.deepEqual(titles(filterCards(CARDS, { topic: "forma" })), []);
  assert.deepEqual(filterCards(CARDS, { topic: "", text: " " }), CARDS);
});

test("cards stand under their first topic, by name, and those without one last", () => {
  const groups = groupByTopic([CARDS[3], ...CARDS.slice(0, 3), card("Cremas", ["formas", "niños"])]);
  assert.deepEqual(groups.map(({ topic, cards }) => [topic, titles(cards)]), [
    ["formas", ["Parches", "Cremas"]], ["niños", ["Jarabe para la tos"]], ["viajes", ["Viajar con medicación"]],
    ["", ["Sin tema"]],
  ]);
});
