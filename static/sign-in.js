import { problemOf } from "./api.js";
import { byId } from "./dom.js";
import { Latest } from "./latest.js";
import { recall, remember } from "./memory.js";
import { problemText } from "./problem-view.js";

const KEY = "fichero-token";
/** What a header can hold. */
const SENDABLE = /^[\x21-\x7e\xa1-\xff]+$/;

/** @returns {string | null} What the tab keeps until it is closed. */
export const keptToken = () => recall("session", KEY);

/**
 * Who reads: anybody, or the bearer of a token.
 */
export class SignIn {
  /** @type {string[]} Those beside `public`. */ #groups = [];
  #checking = new Latest();
  #dialog = /** @type {HTMLDialogElement} */ (byId("sign-in"));
  #box = /** @type {HTMLInputElement} */ (byId("token"));

  /**
   * @param {object} surroundings
   * @param {Api} surroundings.api
   * @param {() => Words} surroundings.words
   * @param {(key: string, left: boolean) => void} surroundings.changed Somebody came, or left: what to say.
   */
  constructor({ api, words, changed }) {
    this.api = api;
    this.words = words;
    this.changed = changed;
    byId("access").addEventListener("click", () => (keptToken() ? this.#forget("status.left") : this.open()));
    byId("sign-in-cancel").addEventListener("click", () => this.#dialog.close());
    byId("sign-in-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#enter(this.#box.value.trim());
    });
    this.#dialog.addEventListener("close", () => {
      this.#checking.stop();
      this.#box.value = "";
      this.#complain("");
    });
  }

  open() {
    this.#dialog.showModal();
  }

  /** Ask the server whom the tab's token stands for, if there is one. A token that it does not know is forgotten. */
  resume() {
    const token = keptToken();
    if (token) {
      this.#check(token, (problem) => problem.slug === "unauthorized" && this.#forget("problem.unauthorized"));
    }
  }

  /** Say everything again, in another language. */
  render() {
    const { say } = this.words();
    const [inside, groups] = [keptToken() !== null, this.#groups.join(", ")];
    byId("access").textContent = say(inside ? "access.leave" : "access.enter");
    byId("groups").textContent = inside && groups ? say("access.groups", { groups }) : "";
  }

  #enter(token) {
    if (token === "") return this.#complain(this.words().say("access.missing"));
    if (!SENDABLE.test(token)) return this.#complain(this.words().say("access.unknown"));
    this.#complain("");
    return this.#check(token, (problem) => {
      const { say } = this.words();
      this.#complain(problem.slug === "unauthorized" ? say("access.unknown") : problemText(problem, this.words()));
      this.#box.focus();
    }, () => {
      const replaced = keptToken() !== null;
      remember("session", KEY, token);
      this.#dialog.close();
      this.changed("status.entered", replaced);
    });
  }

  #check(token, failed, done = () => {}) {
    return this.#checking.run((signal) => this.api.whoAmI({ signal, token }), {
      done: ({ groups }) => {
        this.#groups = groups.filter((group) => group !== "public");
        done();
        this.render();
      },
      failed: (error) => failed(problemOf(error)),
    });
  }

  #forget(key) {
    remember("session", KEY, null);
    this.#groups = [];
    this.render();
    this.changed(key, true);
  }

  #complain(text) {
    byId("sign-in-fault").textContent = text;
    this.#box.toggleAttribute("aria-invalid", text !== "");
  }
}
