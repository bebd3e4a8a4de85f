import { slugOf } from "./api.js";
import { byId, element } from "./dom.js";
import { cardView } from "./card-view.js";
import { Latest } from "./latest.js";
import { problemText, problemView } from "./problem-view.js";
import { formatRoute, parseRoute } from "./route.js";

/**
 * The card beside the answer; on a narrow screen a sheet over it. The address names what is open, so that Back closes
 * it and a link opens it.
 *
 * @typedef {import("./citation-chip.js").OpenTarget} OpenTarget
 * @typedef {import("./i18n.js").Words} Words
 */

const NARROW = "(max-width: 59.99rem)";

export class CardPanel {
  /** @type {OpenTarget | null} */ #target = null;
  /** @type {import("./api.js").Card | null} */ #card = null;
  /** @type {HTMLElement | null} */ #opener = null;
  #loading = new Latest();
  #leaving = false;
  #dialog = /** @type {HTMLDialogElement} */ (byId("card-panel"));
  #narrow = window.matchMedia(NARROW);

  /**
   * @param {object} surroundings
   * @param {ReturnType<typeof import("./api.js").createApi>} surroundings.api
   * @param {() => Words} surroundings.words The interface's words now.
   * @param {HTMLElement} surroundings.fallback Gets the focus back where nothing on the page opened the card.
   * @param {(status: (words: Words) => string) => void} surroundings.announce
   */
  constructor({ api, words, fallback, announce }) {
    this.api = api;
    this.words = words;
    this.fallback = fallback;
    this.announce = announce;
    byId("card-close").addEventListener("click", () => this.close());
    this.#dialog.addEventListener("cancel", (event) => {
      event.preventDefault();
      this.close();
    });
    this.#dialog.addEventListener("close", () => {
      if (this.isOpen && !this.#dialog.open) this.close(); // The browser closed it by itself.
    });
    this.#narrow.addEventListener("change", () => this.#place());
    window.addEventListener("popstate", () => this.followAddress());
  }

  get isOpen() {
    return this.#target !== null;
  }

  /**
   * @param {OpenTarget} target
   * @param {HTMLElement} opener Gets the focus back.
   */
  open(target, opener) {
    const address = location.pathname + location.search + formatRoute(target);
    if (this.isOpen) history.replaceState(history.state, "", address);
    else history.pushState({ ...history.state, ours: true }, "", address);
    this.#setOpener(opener);
    this.#show(target);
  }

  /** Close, by going back where opening it went forward. Asked twice, as Esc may do, it goes back once. */
  close() {
    if (this.#leaving || !this.isOpen) return;
    this.#leaving = true;
    if (history.state?.ours) history.back();
    else {
      history.replaceState(null, "", location.pathname + location.search);
      this.followAddress();
    }
  }

  /** Show what the address names. */
  followAddress() {
    this.#leaving = false;
    const route = parseRoute(location.hash);
    if (!route) this.#hide();
    else if (!this.#target || formatRoute(route) !== formatRoute(this.#target)) this.#show(route);
  }

  /** Say everything again, in another language. */
  render() {
    if (this.#card) this.#renderCard(this.#card, this.#target);
    else if (this.#target) this.#show(this.#target);
  }

  #show(target) {
    const sameCard = this.#card?.card_id === target.cardId;
    this.#target = target;
    this.#place();
    if (sameCard) return this.#arrive(this.#card, target);
    this.#card = null;
    this.#fill("", element("p", { class: "loading" }, this.words().say("card.loading")));
    byId("card-title").focus();
    return this.#loading.run((signal) => this.api.readCard(target.cardId, { signal }), {
      done: (card) => this.#arrive(card, target),
      failed: (error) => this.#fail(slugOf(error), target),
    });
  }

  #arrive(card, target) {
    this.#card = card;
    this.#renderCard(card, target);
    byId("card-title").focus({ preventScroll: true });
    this.#scrollTo(this.#dialog.querySelector("mark"));
  }

  /** To the middle. `scrollIntoView` would move the page behind as well. */
  #scrollTo(quote) {
    const box = byId("card-scroll");
    if (!quote) box.scrollTop = 0;
    else {
      const { top, height } = quote.getBoundingClientRect();
      const above = Math.max(0, (box.clientHeight - height) / 2);
      box.scrollTop += top - box.getBoundingClientRect().top - above;
    }
  }

  #renderCard(card, target) {
    this.#fill(card.title, ...cardView(card, target, this.words()));
    byId("card-title").lang = card.language;
  }

  #fail(slug, target) {
    const text = (words) => (slug === "not-found" ? words.say("card.not-found") : problemText(slug, words));
    this.#fill("", problemView(slug, text(this.words()), this.words(), () => this.#show(target)));
    this.announce(text);
  }

  #fill(title, ...nodes) {
    byId("card-eyebrow").hidden = title === "";
    byId("card-title").textContent = title || this.words().say("card.eyebrow");
    byId("card-title").removeAttribute("lang");
    byId("card-content").replaceChildren(...nodes);
  }

  /** Beside the answer, or over it where there is no room: then nothing behind it can be reached. */
  #place() {
    if (!this.isOpen) return;
    const modal = this.#dialog.matches(":modal");
    if (this.#dialog.open && modal === this.#narrow.matches) return;
    if (this.#dialog.open) this.#dialog.close();
    document.body.classList.add("has-panel");
    if (this.#narrow.matches) this.#dialog.showModal();
    else this.#dialog.show();
  }

  #hide() {
    if (!this.isOpen) return;
    this.#loading.stop();
    this.#target = null;
    this.#card = null;
    this.#dialog.close();
    document.body.classList.remove("has-panel");
    const opener = this.#opener?.isConnected ? this.#opener : this.fallback;
    this.#setOpener(null);
    opener.focus();
  }

  #setOpener(opener) {
    this.#opener?.removeAttribute("aria-expanded");
    opener?.setAttribute("aria-expanded", "true");
    this.#opener = opener;
  }
}
