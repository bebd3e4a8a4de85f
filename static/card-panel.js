import { problemOf } from "./api.js";
import { byId, element } from "./dom.js";
import { cardView } from "./card-view.js";
import { Latest } from "./latest.js";
import { problemText, problemView } from "./problem-view.js";
import { formatRoute } from "./route.js";

/**
 * The card beside the answer; on a narrow screen a sheet over it. The address names what is open, so that Back closes
 * it and a link opens it.
 */

const NARROW = "(max-width: 59.99rem)";

export class CardPanel {
  /** @type {OpenTarget | null} */ #target = null;
  /** @type {Card | null} */ #card = null;
  /** By its id: the page may have been drawn again since. */
  #openerId = "";
  #loading = new Latest();
  #leaving = false;
  #dialog = /** @type {HTMLDialogElement} */ (byId("card-panel"));
  #narrow = window.matchMedia(NARROW);

  /**
   * @param {object} surroundings
   * @param {Api} surroundings.api
   * @param {() => Words} surroundings.words The interface's words now.
   * @param {() => HTMLElement} surroundings.fallback Gets the focus where nothing on the page opened the card.
   * @param {(status: Status) => void} surroundings.announce
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
  }

  get isOpen() {
    return this.#target !== null;
  }

  /**
   * @param {OpenTarget} target
   * @param {HTMLElement} opener Gets the focus back, by its id.
   */
  open(target, opener) {
    const address = location.pathname + location.search + formatRoute(target);
    if (this.isOpen) history.replaceState(history.state, "", address);
    else history.pushState({ ...history.state, ours: true }, "", address);
    this.#setOpener(opener.id);
    this.#show(target);
  }

  /** Close, by going back where opening it went forward. Asked twice, as Esc may do, it goes back once. */
  close() {
    if (this.#leaving || !this.isOpen) return;
    this.#leaving = true;
    if (history.state?.ours) history.back();
    else {
      history.replaceState(null, "", location.pathname + location.search);
      this.follow(null);
    }
  }

  /** @param {OpenTarget | null} route What the address names now; null closes. */
  follow(route) {
    this.#leaving = false;
    if (!route) this.#hide();
    else if (!this.#target || formatRoute(route) !== formatRoute(this.#target)) this.#show(route);
  }

  /** Say everything again, in another language. */
  render() {
    if (this.#card) this.#renderCard(this.#card, this.#target);
    else if (this.#target) this.#show(this.#target);
    this.#setOpener(this.#openerId);
  }

  /** Read the card again: somebody else may see another, or none. */
  reload() {
    this.#card = null;
    if (this.#target) this.#show(this.#target);
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
      failed: (error) => this.#fail(problemOf(error), target),
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

  #fail(problem, target) {
    const text = (words) => (
      problem.slug === "not-found" ? words.say("card.not-found") : problemText(problem, words)
    );
    const retry = () => this.#show(target);
    this.#fill("", problemView(problem, this.words(), retry, { text: text(this.words()) }));
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
    const opener = document.getElementById(this.#openerId) ?? this.fallback();
    this.#setOpener("");
    opener.focus();
  }

  #setOpener(id) {
    document.getElementById(this.#openerId)?.removeAttribute("aria-expanded");
    document.getElementById(id)?.setAttribute("aria-expanded", "true");
    this.#openerId = id;
  }
}
