import { readEvents } from "./event-stream.js";

/**
 * The server's calls. Whatever goes wrong comes out as a `Problem`, except a stop by the caller (`AbortError`).
 */

const PROBLEM_TYPE = "urn:fichero:problem:";
const MAX_ATTEMPTS = 30;
const MAX_WAIT_SECONDS = 3600;
/** What a reply means that brings no problem document, as from a proxy. */
const OF_STATUS = { 401: "unauthorized", 429: "busy", 503: "not-ready" };

/** What went wrong, by the server's slug or one of ours: `offline`, `timeout`, `interrupted`, `busy`. */
export class Problem extends Error {
  /**
   * @param {string} slug
   * @param {{status?: number, retryAfterSeconds?: number, cause?: unknown}} [details]
   */
  constructor(slug, { status = 0, retryAfterSeconds = 0, cause } = {}) {
    super(`The request failed: ${slug}`, { cause });
    this.name = "Problem";
    this.slug = slug;
    this.status = status;
    this.retryAfterSeconds = retryAfterSeconds;
    this.retryAt = Date.now() + retryAfterSeconds * 1000;
  }
}

/**
 * @param {unknown} error
 * @returns {Problem} A fault of our own looks like one of the server's.
 */
export function problemOf(error) {
  return error instanceof Problem ? error : new Problem("internal", { cause: error });
}

/**
 * @param {ApiSurroundings} surroundings
 */
export function createApi(surroundings) {
  const call = (path, options, init = {}) => callPatiently(surroundings, path, init, options);
  return {
    /** @type {(options: CallOptions) => Promise<{cards: CardSummary[]}>} */
    listCards: (options) => call("cards", options),
    /** @type {(cardId: string, options: CallOptions) => Promise<Card>} */
    readCard: (cardId, options) => call(`cards/${encodeURIComponent(cardId)}`, options),
    /** @type {(language: Language, options: CallOptions) => Promise<{suggestions: Suggestion[]}>} */
    suggest: (language, options) => call(`suggestions?language=${language}`, options),
    /** @type {(options: CallOptions) => Promise<{groups: string[]}>} */
    whoAmI: (options) => call("whoami", options),
    /** @type {(question: string, options: AskOptions) => Promise<Answer>} In pieces, if the server gives them. */
    ask: (question, { history = [], ...options }) => call("ask", options, {
      method: "POST",
      body: JSON.stringify({ question, stream: true, ...(history.length > 0 && { history }) }),
      headers: { Accept: "text/event-stream, application/json", "Content-Type": "application/json" },
    }),
  };
}

/** Call again after `Retry-After` as long as the server is starting. */
async function callPatiently(surroundings, path, init, options) {
  const { signal, onWait } = options;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await callOnce(surroundings, path, init, options);
    } catch (problem) {
      if (!(problem instanceof Problem) || problem.status !== 503 || problem.slug !== "not-ready" || attempt >= MAX_ATTEMPTS) throw problem;
      onWait?.(problem.retryAfterSeconds);
      await surroundings.sleep(problem.retryAfterSeconds, signal);
    }
  }
}

async function callOnce({ fetch, token, timeoutSeconds = 60 }, path, init, { signal, onEvent, token: bearer = token() }) {
  signal.throwIfAborted();
  const controller = new AbortController();
  const stop = () => controller.abort(signal.reason);
  signal.addEventListener("abort", stop);
  let timer;
  const alive = () => {
    clearTimeout(timer);
    timer = setTimeout(() => controller.abort(new Problem("timeout")), timeoutSeconds * 1000);
  };
  const headers = { Accept: "application/json", ...init.headers };
  if (bearer) headers.Authorization = `Bearer ${bearer}`;
  try {
    alive();
    const response = await fetch(path, { ...init, headers, signal: controller.signal });
    if (!response.ok) throw await readProblem(response);
    const streamed = response.headers.get("Content-Type")?.startsWith("text/event-stream");
    return await (streamed ? readAnswer(response.body, onEvent, alive) : response.json());
  } catch (error) {
    if (controller.signal.aborted) throw controller.signal.reason;
    if (error instanceof Problem) throw error;
    throw new Problem(error instanceof SyntaxError ? "internal" : "offline", { cause: error });
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", stop);
  }
}

/** Hand on what comes before the whole answer; every piece, a comment too, is a sign of life. */
async function readAnswer(body, onEvent, alive) {
  const watch = new TransformStream({
    transform(bytes, out) {
      alive();
      out.enqueue(bytes);
    },
  });
  const events = readEvents(body.pipeThrough(watch));
  for (let next = await events.next(); next.value; next = await events.next()) {
    const { event, data } = next.value;
    const value = JSON.parse(data);
    if (event === "error") throw new Problem(slugIn(value) ?? "internal"); // its status is none, so nobody asks again
    if (event === "done") {
      events.next().catch(() => {}); // read to its end, the connection can be used again
      return value;
    }
    onEvent?.(event, value);
  }
  throw new Problem("interrupted");
}

async function readProblem(response) {
  const body = await response.json().catch(() => null);
  const { status } = response;
  const said = slugIn(body);
  const slug = status === 429 || said === "overloaded" ? "busy" : said ?? OF_STATUS[status] ?? "internal";
  return new Problem(slug, { status, retryAfterSeconds: parseRetryAfter(response.headers.get("Retry-After")) });
}

/** The slug of a problem document, if it is one of ours. */
function slugIn(body) {
  const type = String(body?.type ?? "");
  return type.startsWith(PROBLEM_TYPE) ? type.slice(PROBLEM_TYPE.length) : null;
}

/**
 * @param {string | null} value
 * @returns {number} Seconds to wait, between 1 and an hour; 2 where the server names none.
 */
export function parseRetryAfter(value) {
  const seconds = value !== null && /^[0-9]+$/.test(value) ? Number(value) : 2;
  return Math.min(Math.max(seconds, 1), MAX_WAIT_SECONDS);
}
