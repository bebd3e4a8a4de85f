import { element } from "./dom.js";

/** Another try of the same request can only fail again. */
const HOPELESS = new Set([
  "invalid-request", "question-empty", "question-without-words", "question-too-long", "body-too-large",
  "unsupported-media-type", "not-found",
]);

/**
 * @param {Problem} problem
 * @param {Words} words
 * @returns {string}
 */
export function problemText({ slug, retryAfterSeconds }, words) {
  const [key, values] = [`problem.${slug}`, { count: retryAfterSeconds }];
  return words.has(key) || words.has(`${key}.other`) ? words.say(key, values) : words.say("problem.internal");
}

/**
 * @param {Problem} problem
 * @param {Words} words
 * @param {() => void} retry Offered where another try may help; where the server names a time, once it is over.
 * @param {{text?: string, label?: string}} [instead] Of what is said of the problem, and of the button.
 * @returns {HTMLElement}
 */
export function problemView(problem, words, retry, { text, label } = {}) {
  const waits = problem.slug === "busy";
  const button = HOPELESS.has(problem.slug) ? null : element("button", {
    type: "button", class: "quiet", click: retry, disabled: waits, "data-testid": "retry",
  }, label ?? words.say("problem.retry"));
  const sentence = element("p", {}, text ?? problemText(problem, words));
  const view = element("div", { class: "problem", "data-testid": "error", "data-problem": problem.slug }, sentence, button);
  if (waits) countDown(problem, words, view, sentence, button);
  return view;
}

/** Say every second how long it still takes, to eyes only, until the button can be pressed or is gone. */
function countDown(problem, words, view, sentence, button) {
  const tick = () => {
    const count = Math.ceil((problem.retryAt - Date.now()) / 1000);
    sentence.textContent = count > 0 ? words.say("problem.busy", { count }) : words.say("problem.busy.over");
    button.disabled = count > 0;
    if (count <= 0 || !view.isConnected) clearInterval(timer);
  };
  const timer = setInterval(tick, 250);
  requestAnimationFrame(tick);
}
