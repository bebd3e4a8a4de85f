import { answerStatus } from "./answer.js";
import { createApi, Problem, problemOf } from "./api.js";
import { Browse } from "./browse.js";
import { CardPanel } from "./card-panel.js";
import { Conversation } from "./conversation.js";
import { answerAsMarkdown, conversationAsJson, conversationAsMarkdown } from "./conversation-text.js";
import { byId, element } from "./dom.js";
import { historyOf } from "./history.js";
import { chooseLanguage, otherLanguage, wordsIn } from "./i18n.js";
import { Latest, sleep } from "./latest.js";
import { recall, remember } from "./memory.js";
import { Preview } from "./preview.js";
import { problemText, problemView } from "./problem-view.js";
import { QuestionForm } from "./question-form.js";
import { formatRoute, parseRoute } from "./route.js";
import { copyText, saveFile } from "./saving.js";
import { keptToken, SignIn } from "./sign-in.js";

const CONVERSATION_KEY = "fichero-conversation";

const state = {
  words: wordsIn(chooseLanguage(recall("local", "fichero-language"), navigator.languages)),
  view: "ask",
  /** @type {Suggestion[]} */ suggestions: [],
  /** @type {{problem: Problem, question: string} | null} */ failure: null,
  /** What the status line says in each view, in whichever language. */
  /** @type {Record<string, Status>} */ statuses: { ask: () => "", cards: () => "" },
};

const currentWords = () => state.words;
const preview = new Preview();
/** @type {() => PageTools} */
const tools = () => ({ words: state.words, preview, openCard: (target, opener) => panel.open(target, opener) });
const asking = new Latest();
const suggesting = new Latest();
const api = createApi({ fetch: (...call) => window.fetch(...call), token: keptToken, sleep });
const form = new QuestionForm({ ask, stop, words: currentWords });
const conversation = new Conversation(tools, { copy: copyAnswer, askAgain: askFromButton });
const panel = new CardPanel({ api, words: currentWords, fallback: placeInView, announce: setStatus });
const browse = new Browse({
  api, tools, announce: (status) => setStatus(status, "cards"), changed: rememberFilter,
});
const signIn = new SignIn({ api, words: currentWords, changed: readerChanged });

/** @param {string} question */
function ask(question) {
  stop();
  if (question === "") return fail(new Problem("question-empty"), question);
  const history = historyOf(conversation.answers);
  conversation.begin(question);
  settle({ status: (words) => words.say("status.searching") });
  form.setBusy(true);
  if (window.matchMedia("(pointer: coarse)").matches) form.box.blur(); // the keyboard makes room
  reveal();
  return asking.run((signal) => api.ask(question, {
    signal,
    history,
    onWait: (count) => setStatus((words) => words.say("status.waiting", { count })),
    onEvent: (event, value) => conversation.receive(event, value),
  }), {
    done: (answer) => finish(answer, question),
    failed: (error) => fail(problemOf(error), question),
  });
}

/** On a phone the answer's place comes into view. */
function reveal() {
  if (window.matchMedia("(max-width: 40rem)").matches) byId("status").scrollIntoView({ block: "start" });
}

/**
 * @param {Answer} answer
 * @param {string} question As it was asked.
 */
function finish(answer, question) {
  conversation.finish(answer);
  if (!answer.refusal) form.clearIf(question);
  settle({ status: (words) => answerStatus(answer, words) });
  reveal();
}

/**
 * @param {Problem} problem
 * @param {string} question
 */
function fail(problem, question) {
  conversation.breakOff();
  settle({ failure: { problem, question }, status: (words) => problemText(problem, words) });
  if (problem.slug.startsWith("question-")) form.box.focus();
}

function stop() {
  if (!asking.stop()) return;
  const key = conversation.breakOff() ? "status.stopped.partly" : "status.stopped";
  settle({ status: (words) => words.say(key) });
}

/** @param {{failure?: typeof state.failure, status: Status}} next */
function settle({ failure = null, status }) {
  state.failure = failure;
  form.setBusy(false);
  setStatus(status);
  renderProblem();
  renderAround();
  remember("session", CONVERSATION_KEY, JSON.stringify(conversation.answers));
}

/**
 * @param {Status} status Said at once, and again whenever its view is shown.
 * @param {string} [view]
 */
function setStatus(status, view = "ask") {
  state.statuses[view] = status;
  byId("status").textContent = status(state.words);
}

function renderProblem() {
  const { failure, words } = state;
  byId("problems").replaceChildren(...(failure ? [failureView(failure, words)] : []));
}

function failureView({ problem, question }, words) {
  if (problem.slug !== "unauthorized") return problemView(problem, words, () => askFromButton(question));
  return problemView(problem, words, () => signIn.open(), { label: words.say("access.enter") });
}

/** What stands around the answers: questions to begin with, then what can be done with the conversation. */
function renderAround() {
  const shown = conversation.isEmpty ? state.suggestions : [];
  byId("suggestions").hidden = shown.length === 0;
  byId("suggestion-list").replaceChildren(...shown.map(({ question, language }) => element("li", {}, element("button", {
    type: "button", class: "card-button", lang: language, "data-testid": "suggestion",
    click: () => askFromButton(question),
  }, question))));
  byId("keeping").hidden = conversation.answers.length === 0;
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

/** @param {Answer} answer */
async function copyAnswer(answer) {
  const copied = await copyText(answerAsMarkdown(answer, state.words, pageUrl()));
  setStatus((words) => words.say(copied ? "status.copied" : "status.not-copied"));
}

/** @param {"md" | "json"} kind */
function save(kind) {
  const [date, url] = [new Date().toISOString(), pageUrl()];
  const text = kind === "md" ? conversationAsMarkdown(conversation.answers, state.words, { pageUrl: url, date })
    : conversationAsJson(conversation.answers, { pageUrl: url, date });
  saveFile(`fichero-${date.slice(0, 10)}.${kind}`, text, kind === "md" ? "text/markdown" : "application/json");
}

function clear() {
  asking.stop();
  panel.close();
  conversation.clear();
  settle({ status: (words) => words.say("status.cleared") });
  form.box.focus();
}

const pageUrl = () => location.origin + location.pathname;

/** Where the focus belongs when what had it is gone. */
function placeInView() {
  return state.view === "ask" ? form.box : byId("filter");
}

/** Show what the address names: a view, or a card over it. */
function followAddress() {
  const route = parseRoute(location.hash);
  if (route?.view !== "card") setView(route?.view ?? "ask");
  if (route?.view === "cards") browse.show(route);
  panel.follow(route?.view === "card" ? route : null);
}

/** @param {string} view `ask` or `cards` */
function setView(view) {
  state.view = view;
  for (const node of document.querySelectorAll("[data-view]")) {
    node.toggleAttribute("hidden", node.getAttribute("data-view") !== view);
  }
  for (const link of document.querySelectorAll("[data-to]")) {
    if (link.getAttribute("data-to") === view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  byId("problems").hidden = view !== "ask";
  document.title = state.words.say(`page.title.${view}`);
  setStatus(state.statuses[view], view);
}

/** @param {{topic: string, text: string}} filter */
function rememberFilter({ topic, text }) {
  if (panel.isOpen) return;
  const hash = formatRoute({ view: "cards", topic, text });
  history.replaceState(history.state, "", location.pathname + location.search + hash);
}

/**
 * Another reader may see other cards, and none of the answers that were made for the one who left.
 *
 * @param {string} key Of what to say.
 * @param {boolean} left
 */
function readerChanged(key, left) {
  if (left) {
    asking.stop();
    panel.close();
    conversation.clear();
  }
  settle({ status: (words) => words.say(key) });
  browse.reset();
  followAddress();
  loadSuggestions();
}

/** Say everything again that stands on the page. */
function renderWords() {
  const { words } = state;
  document.documentElement.lang = words.language;
  for (const node of document.querySelectorAll("[data-say]")) {
    node.textContent = words.say(node.getAttribute("data-say"));
  }
  form.box.placeholder = words.say("ask.hint");
  byId("language").lang = otherLanguage(words.language);
  form.renderRoom();
  conversation.render();
  browse.render();
  panel.render();
  signIn.render();
  setView(state.view);
  renderProblem();
  renderAround();
}

function switchLanguage() {
  state.words = wordsIn(otherLanguage(state.words.language));
  remember("local", "fichero-language", state.words.language);
  renderWords();
  loadSuggestions();
}

/** The page asks and answers without them, too. */
function loadSuggestions() {
  return suggesting.run((signal) => api.suggest(state.words.language, { signal }), {
    done: ({ suggestions }) => {
      state.suggestions = suggestions;
      renderAround();
    },
    failed: () => {},
  });
}

/** What this tab was told before it was loaded again. */
function restoreConversation() {
  try {
    conversation.restore(JSON.parse(recall("session", CONVERSATION_KEY) ?? "[]"));
  } catch {
    conversation.clear();
  }
}

byId("language").addEventListener("click", switchLanguage);
byId("save-md").addEventListener("click", () => save("md"));
byId("save-json").addEventListener("click", () => save("json"));
byId("clear").addEventListener("click", clear);
window.addEventListener("popstate", followAddress);
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || event.defaultPrevented || byId("sign-in").matches(":modal")) return;
  if (preview.hide()) return;
  if (panel.isOpen) panel.close();
  else stop();
});
form.fill(new URLSearchParams(location.search).get("q") ?? "");
restoreConversation();
renderWords();
followAddress();
signIn.resume();
loadSuggestions();
