import { byId } from "./dom.js";
import { codePointLength, sliceCodePoints } from "./spans.js";

/**
 * The question box: Enter asks, Shift and Enter begin a new line, and how much room is left is said in time.
 */

const MAX_CHARS = 2000;
const WARN_FROM_CHARS = 1800;

export class QuestionForm {
  #box = /** @type {HTMLTextAreaElement} */ (byId("question"));

  /**
   * @param {object} handlers
   * @param {(question: string) => void} handlers.ask
   * @param {() => void} handlers.stop
   * @param {() => Words} handlers.words
   */
  constructor({ ask, stop, words }) {
    this.words = words;
    this.submit = () => ask(this.#box.value.trim());
    byId("ask-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.submit();
    });
    byId("stop").addEventListener("click", stop);
    this.#box.addEventListener("input", () => this.renderRoom());
    this.#box.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
      event.preventDefault();
      this.submit();
    });
  }

  get box() {
    return this.#box;
  }

  /** @param {string} question */
  fill(question) {
    this.#box.value = sliceCodePoints(question, 0, MAX_CHARS);
    this.renderRoom();
  }

  /** @param {string} question Emptied only if the box still holds it: the visitor may be writing the next one. */
  clearIf(question) {
    if (this.#box.value.trim() === question) this.fill("");
  }

  /** @param {boolean} busy */
  setBusy(busy) {
    const stop = byId("stop");
    if (!busy && document.activeElement === stop) this.#box.focus();
    stop.hidden = !busy;
  }

  renderRoom() {
    const count = codePointLength(this.#box.value);
    const full = count >= MAX_CHARS;
    const notice = byId("room");
    notice.classList.toggle("is-full", full);
    notice.classList.toggle("is-keys", count < WARN_FROM_CHARS);
    if (full) notice.textContent = this.words().say("ask.full", { count: MAX_CHARS });
    else if (count >= WARN_FROM_CHARS) notice.textContent = this.words().say("ask.left", { count: MAX_CHARS - count });
    else notice.textContent = this.words().say("ask.keys");
  }
}
