import { answerView, pendingView } from "./answer.js";
import { byId } from "./dom.js";

/**
 * The answers so far, the newest on top. Those that stand already are left alone, so that focus stays where it is.
 *
 * @typedef {import("./api.js").Answer} Answer
 * @typedef {import("./i18n.js").Words} Words
 */
export class Feed {
  /** @type {Answer[]} The newest first. */ #answers = [];
  /** @type {string | null} */ #pending = null;
  /** @type {HTMLElement | null} */ #pendingNode = null;
  #entries = byId("entries");

  /**
   * @param {() => Words} words
   * @param {import("./citation-chip.js").OpenCard} openCard
   */
  constructor(words, openCard) {
    this.words = words;
    this.openCard = openCard;
  }

  get isEmpty() {
    return this.#answers.length === 0 && this.#pending === null;
  }

  /** @param {string | null} question The one under way; null takes its place away again. */
  setPending(question) {
    this.#pendingNode?.remove();
    this.#pending = question;
    this.#pendingNode = question === null ? null : pendingView(question, this.words());
    if (this.#pendingNode) this.#entries.prepend(this.#pendingNode);
  }

  /** @param {Answer} answer Takes the place of what was pending. */
  add(answer) {
    this.#answers.unshift(answer);
    this.setPending(null);
    this.#entries.prepend(answerView(answer, this.words(), this.openCard));
  }

  /** Draw everything again, in another language. */
  render() {
    this.#entries.replaceChildren(...this.#answers.map((answer) => answerView(answer, this.words(), this.openCard)));
    this.setPending(this.#pending);
  }
}
