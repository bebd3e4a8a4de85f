import { answerView } from "./answer.js";
import { byId } from "./dom.js";
import { PendingAnswer } from "./pending.js";

/**
 * What was asked and answered, the newest on top. Answers that stand already are left alone, so that focus stays where
 * it is.
 */
export class Conversation {
  /** @type {Answer[]} The oldest first. */ #answers = [];
  /** @type {PendingAnswer | null} */ #pending = null;
  #entries = byId("entries");

  /**
   * @param {() => PageTools} tools
   * @param {{copy: (answer: Answer) => void, askAgain: (question: string) => void}} handlers
   */
  constructor(tools, handlers) {
    this.tools = tools;
    this.handlers = handlers;
  }

  /** The oldest first. */
  get answers() {
    return this.#answers;
  }

  get isEmpty() {
    return this.#answers.length === 0 && this.#pending === null;
  }

  /** @param {string} question */
  begin(question) {
    this.#pending = new PendingAnswer(question, this.#answers.length, this.tools());
    this.#entries.prepend(this.#pending.node);
  }

  /**
   * @param {string} event
   * @param {unknown} value
   */
  receive(event, value) {
    this.#pending?.receive(event, value);
  }

  /** @param {Answer} answer Takes the place of what was on its way, and the focus with it. */
  finish(answer) {
    const node = this.#view(answer, this.#answers.length);
    this.#answers.push(answer);
    const focused = this.#pending?.node.contains(document.activeElement) ? document.activeElement.id : "";
    this.#takeDown();
    this.#entries.prepend(node);
    if (focused) document.getElementById(focused)?.focus();
  }

  /** @returns {boolean} Whether anything had been shown of what was on its way: that stays, as incomplete. */
  breakOff() {
    const partial = this.#pending?.partial() ?? null;
    if (partial) this.finish(partial);
    else this.#takeDown();
    return partial !== null;
  }

  clear() {
    this.#takeDown();
    this.#answers = [];
    this.render();
  }

  /** @param {Answer[]} answers Of before, the oldest first. */
  restore(answers) {
    this.#answers = answers;
    this.render();
  }

  /** Draw everything again, in another language. */
  render() {
    this.#entries.replaceChildren(...this.#answers.map((answer, turn) => this.#view(answer, turn)).reverse());
    if (!this.#pending) return;
    this.#pending.tools = this.tools();
    this.#pending.draw();
    this.#entries.prepend(this.#pending.node);
  }

  #view(answer, turn) {
    return answerView(answer, turn, this.tools(), {
      copy: () => this.handlers.copy(answer), askAgain: () => this.handlers.askAgain(answer.question),
    });
  }

  #takeDown() {
    this.#pending?.node.remove();
    this.#pending = null;
  }
}
