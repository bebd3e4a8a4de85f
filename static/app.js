import { answerStatus } from "./answer.js";
import { createApi, slugOf } from "./api.js";
import { CardPanel } from "./card-panel.js";
import { byId, element } from "./dom.js";
import { Feed } from "./feed.js";
import { chooseLanguage, otherLanguage, wordsIn } from "./i18n.js";
import { Latest, sleep } from "./latest.js";
import { recall, remember } from "./memory.js";
import { problemText, problemView } from "./problem-view.js";
import { QuestionForm } from "./question-form.js";
import { chooseSuggestions } from "./suggestions.js";

/** @typedef {import("./i18n.js").Words} Words */

const state = {
  words: wordsIn(chooseLanguage(recall("local", "fichero-language"), navigator.languages)),
  /** @type {import("./api.js").CardSummary[]} */ cards: [],
  /** @type {{slug: string, question: string} | null} */ problem: null,
  /** What the status line says, in whichever language. */
  status: (/** @type {Words} */ _words) => "",
};

const currentWords = () => state.words;
const asking = new Latest();
const api = createApi({
  fetch: (...call) => window.fetch(...call), token: () => recall("session", "fichero-token"), sleep,
});
const form = new QuestionForm({ ask, stop, words: currentWords });
const feed = new Feed(currentWords, (target, opener) => panel.open(target, opener));
const panel = new CardPanel({ api, words: currentWords, fallback: form.box, announce: setStatus });

/** @param {string} question */
function ask(question) {
  asking.stop();
  if (question === "") return showProblem("question-empty", question);
  const onWait = (count) => setStatus((words) => words.say("status.waiting", { count }));
  update({ pending: question, problem: null, status: (words) => words.say("status.searching") });
  if (window.matchMedia("(pointer: coarse)").matches) form.box.blur(); // The keyboard makes room.
  reveal();
  return asking.run((signal) => api.ask(question, { signal, onWait }), {
    done: (answer) => showAnswer(answer, question),
    failed: (error) => showProblem(slugOf(error), question),
  });
}

/** On a phone the answer's place comes into view. */
function reveal() {
  if (window.matchMedia("(max-width: 40rem)").matches) byId("status").scrollIntoView({ block: "start" });
}

/**
 * @param {import("./api.js").Answer} answer
 * @param {string} question As it was asked.
 */
function showAnswer(answer, question) {
  feed.add(answer);
  if (!answer.refusal) form.clearIf(question);
  update({ pending: null, problem: null, status: (words) => answerStatus(answer, words) });
  reveal();
}

/**
 * @param {string} slug
 * @param {string} question
 */
function showProblem(slug, question) {
  update({ pending: null, problem: { slug, question }, status: (words) => problemText(slug, words) });
  if (slug.startsWith("question-")) form.box.focus();
}

function stop() {
  if (asking.stop()) update({ pending: null, problem: null, status: (words) => words.say("status.stopped") });
}

/**
 * @param {{pending: string | null, problem: typeof state.problem, status: typeof state.status}} next
 */
function update({ pending, problem, status }) {
  state.problem = problem;
  feed.setPending(pending);
  form.setBusy(pending !== null);
  setStatus(status);
  renderProblem();
  renderSuggestions();
}

/** @param {typeof state.status} status */
function setStatus(status) {
  state.status = status;
  byId("status").textContent = status(state.words);
}

function renderProblem() {
  const { problem, words } = state;
  const retry = () => askFromButton(problem.question);
  const view = problem && problemView(problem.slug, problemText(problem.slug, words), words, retry);
  byId("problems").replaceChildren(...(view ? [view] : []));
}

function renderSuggestions() {
  const shown = feed.isEmpty ? chooseSuggestions(state.cards, state.words.language) : [];
  byId("suggestions").hidden = shown.length === 0;
  byId("suggestion-list").replaceChildren(...shown.map(({ title, language }) => element("li", {}, element("button", {
    type: "button", class: "card-button", lang: language, "data-testid": "suggestion",
    click: () => askFromButton(title),
  }, title))));
}

/**
 * The button pressed is about to go, and the focus with it: give it a place first.
 *
 * @param {string} question
 */
function askFromButton(question) {
  form.fill(question);
  byId("ask").focus();
  ask(question);
}

/** Say everything again that stands on the page. */
function renderWords() {
  const { words } = state;
  document.documentElement.lang = words.language;
  document.title = words.say("page.title");
  for (const node of document.querySelectorAll("[data-say]")) {
    node.textContent = words.say(node.getAttribute("data-say"));
  }
  form.box.placeholder = words.say("ask.hint");
  byId("language").lang = otherLanguage(words.language);
  form.renderRoom();
  feed.render();
  panel.render();
  setStatus(state.status);
  renderProblem();
  renderSuggestions();
}

function switchLanguage() {
  state.words = wordsIn(otherLanguage(state.words.language));
  remember("local", "fichero-language", state.words.language);
  renderWords();
}

async function loadSuggestions() {
  try {
    state.cards = (await api.listCards({ signal: new AbortController().signal })).cards;
  } catch {
    return; // The page asks and answers without them.
  }
  renderSuggestions();
}

byId("language").addEventListener("click", switchLanguage);
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || event.defaultPrevented) return;
  if (panel.isOpen) panel.close();
  else stop();
});
form.fill(new URLSearchParams(location.search).get("q") ?? "");
renderWords();
panel.followAddress();
loadSuggestions();
