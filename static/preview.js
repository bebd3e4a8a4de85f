import { byId, element } from "./dom.js";
import { plainQuote } from "./quote-parts.js";

const GAP = 6;

/**
 * Title and sentence of a citation while the pointer or the keyboard is on its chip. It can be pointed at, goes with
 * Esc, and is the chip's description as long as it is there.
 */
export class Preview {
  #box = byId("preview");
  /** @type {HTMLElement | null} */ #chip = null;
  /** @type {number | undefined} */ #leaving;

  constructor() {
    this.#box.addEventListener("pointerenter", () => clearTimeout(this.#leaving));
    this.#box.addEventListener("pointerleave", () => this.hide());
  }

  /**
   * @param {HTMLElement} chip
   * @param {Citation} citation
   * @param {Words} words
   */
  attach(chip, citation, words) {
    const show = () => this.#show(chip, citation, words);
    chip.addEventListener("pointerenter", ({ pointerType }) => pointerType !== "touch" && show());
    // the way from the chip to the preview crosses a gap
    chip.addEventListener("pointerleave", () => { this.#leaving = setTimeout(() => this.hide(), 150); });
    chip.addEventListener("keyup", ({ key }) => key === "Tab" && show());
    chip.addEventListener("blur", () => this.hide());
    chip.addEventListener("click", () => this.hide());
  }

  /** @returns {boolean} Whether there was one to hide. */
  hide() {
    clearTimeout(this.#leaving);
    if (!this.#chip) return false;
    this.#chip.removeAttribute("aria-describedby");
    this.#chip = null;
    this.#box.hidden = true;
    return true;
  }

  #show(chip, { title, language, quote, verdict }, words) {
    this.hide();
    this.#chip = chip;
    const sentence = plainQuote(quote);
    this.#box.replaceChildren(
      element("strong", { lang: language }, title),
      ...(sentence ? [element("q", { lang: language }, sentence)] : []),
      ...(verdict === "valid" ? [] : [element("span", { class: "verdict" }, words.say(`source.verdict.${verdict}`))]),
    );
    this.#box.hidden = false;
    chip.setAttribute("aria-describedby", this.#box.id);
    this.#place(chip.getBoundingClientRect(), this.#box.getBoundingClientRect());
  }

  /** Above the chip where there is room, else below it, and never out of the window. */
  #place(chip, { width, height }) {
    const above = chip.top - height - GAP;
    const left = Math.min(chip.left, document.documentElement.clientWidth - width - GAP);
    this.#box.style.top = `${above >= GAP ? above : chip.bottom + GAP}px`;
    this.#box.style.left = `${Math.max(GAP, left)}px`;
  }
}
