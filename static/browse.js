import { cardButtons } from "./card-buttons.js";
import { filterCards, groupByTopic, topicsOf } from "./card-list.js";
import { byId, element } from "./dom.js";
import { Latest } from "./latest.js";
import { problemOf } from "./api.js";
import { problemText, problemView } from "./problem-view.js";

const SHOWN_AT_FIRST = 200;

/**
 * The cards by topic, to look through without asking.
 */
export class Browse {
  /** @type {CardSummary[] | null} */ #cards = null;
  #filter = { topic: "", text: "" };
  #most = SHOWN_AT_FIRST;
  #loading = new Latest();
  #text = /** @type {HTMLInputElement} */ (byId("filter"));
  #topic = /** @type {HTMLSelectElement} */ (byId("topic"));
  #list = byId("card-list");

  /**
   * @param {object} surroundings
   * @param {Api} surroundings.api
   * @param {() => PageTools} surroundings.tools
   * @param {(status: Status) => void} surroundings.announce
   * @param {(filter: {topic: string, text: string}) => void} surroundings.changed Told what the address should say.
   */
  constructor({ api, tools, announce, changed }) {
    this.api = api;
    this.tools = tools;
    this.announce = announce;
    const change = () => {
      this.show({ topic: this.#topic.value, text: this.#text.value });
      changed(this.#filter);
    };
    this.#text.addEventListener("input", change);
    this.#topic.addEventListener("change", change);
    byId("filter-form").addEventListener("submit", (event) => event.preventDefault());
  }

  /** @param {{topic: string, text: string}} filter */
  show({ topic, text }) {
    const same = topic === this.#filter.topic && text === this.#filter.text;
    if (same && this.#cards) return; // what has the focus stays
    this.#filter = { topic, text };
    this.#most = SHOWN_AT_FIRST;
    if (this.#text.value !== text) this.#text.value = text;
    if (this.#cards) this.render();
    else this.#load();
  }

  /** Forget the cards: another caller may see others. */
  reset() {
    this.#loading.stop();
    this.#cards = null;
    this.#list.replaceChildren();
  }

  /** Draw what is there, again in another language. */
  render() {
    const cards = this.#cards;
    if (!cards) return;
    const { words } = this.tools();
    this.#renderTopics(cards, words);
    const found = filterCards(cards, this.#filter);
    const isOwn = (card) => card.language === words.language;
    const shown = [...found.filter(isOwn), ...found.filter((card) => !isOwn(card))].slice(0, this.#most);
    const groups = [shown.filter(isOwn), shown.filter((card) => !isOwn(card))].flatMap(groupByTopic);
    const more = element("button", {
      type: "button", class: "quiet", click: () => {
        this.#most = Infinity;
        this.render();
      },
    }, words.say("browse.more", { count: found.length - this.#most }));
    this.#list.replaceChildren(...groups.map((group) => this.#groupView(group)), ...(found.length > this.#most ? [more] : []));
    this.announce(({ say }) => say("browse.count", { count: cards.length, found: found.length }));
  }

  #load() {
    this.announce((words) => words.say("browse.loading"));
    this.#loading.run((signal) => this.api.listCards({ signal }), {
      done: ({ cards }) => {
        this.#cards = cards;
        this.render();
      },
      failed: (error) => this.#fail(problemOf(error)),
    });
  }

  #fail(problem) {
    this.announce((words) => problemText(problem, words));
    this.#list.replaceChildren(problemView(problem, this.tools().words, () => this.show(this.#filter)));
  }

  #renderTopics(cards, words) {
    const options = topicsOf(cards).map(({ topic, count }) => element("option", { value: topic }, `${topic} (${count})`));
    this.#topic.replaceChildren(element("option", { value: "" }, words.say("browse.all")), ...options);
    this.#topic.value = this.#filter.topic;
  }

  #groupView({ topic, cards }) {
    const { words, openCard } = this.tools();
    return element("section", { class: "drawer" },
      element("h3", {}, topic || words.say("browse.untitled")), cardButtons(cards, "browsed", openCard));
  }
}
