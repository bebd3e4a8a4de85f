/**
 * The server's three calls. Whatever goes wrong comes out as a `Problem`, except a stop by the caller (`AbortError`).
 *
 * @typedef {object} Citation
 * @property {number} number
 * @property {string} card_id
 * @property {string} title
 * @property {string} language
 * @property {string | null} license
 * @property {string | null} source
 * @property {string | null} accessed_at
 * @property {string} quote
 * @property {number | null} start In code points of the card's text.
 * @property {number | null} end
 * @property {"valid" | "weak" | "unsupported" | "unknown"} verdict
 *
 * @typedef {{type: "text", text: string, language: string, supported?: boolean}
 *   | {type: "citation", citation: number, number: number, card_id: string}} Segment
 * @typedef {{card_id: string, title: string, language: string}} CardTitle
 * @typedef {{question: string, language: string, mode: string, degraded: boolean, segments: Segment[],
 *   citations: Citation[], refusal: {reason: string, nearest: CardTitle[]} | null}} Answer
 * @typedef {CardTitle & {topics: string[]}} CardSummary
 * @typedef {CardSummary & {license: string | null, source: string | null, accessed_at: string | null,
 *   text: string}} Card
 *
 * @typedef {object} CallOptions
 * @property {AbortSignal} signal
 * @property {(seconds: number) => void} [onWait] Told before each wait for a server that is not ready yet.
 *
 * @typedef {object} Surroundings
 * @property {typeof globalThis.fetch} fetch
 * @property {() => string | null} token
 * @property {(seconds: number, signal: AbortSignal) => Promise<void>} sleep Rejects once the signal aborts.
 * @property {number} [timeoutSeconds]
 */

const PROBLEM_TYPE = "urn:fichero:problem:";
const MAX_ATTEMPTS = 30;
const MAX_WAIT_SECONDS = 60;

/** What went wrong, by the server's slug or one of ours: `offline`, `timeout`. */
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
  }
}

/**
 * @param {unknown} error
 * @returns {string}
 */
export function slugOf(error) {
  return error instanceof Problem ? error.slug : "internal";
}

/**
 * @param {Surroundings} surroundings
 */
export function createApi(surroundings) {
  const call = (path, init, options) => callPatiently(surroundings, path, init, options);
  return {
    /** @type {(options: CallOptions) => Promise<{cards: CardSummary[]}>} */
    listCards: (options) => call("cards", {}, options),
    /** @type {(cardId: string, options: CallOptions) => Promise<Card>} */
    readCard: (cardId, options) => call(`cards/${encodeURIComponent(cardId)}`, {}, options),
    /** @type {(question: string, options: CallOptions) => Promise<Answer>} */
    ask: (question, options) => call("ask", {
      method: "POST", body: JSON.stringify({ question }), headers: { "Content-Type": "application/json" },
    }, options),
  };
}

/** Call again after `Retry-After` as long as the server is starting. */
async function callPatiently(surroundings, path, init, { signal, onWait = (_seconds) => {} }) {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await callOnce(surroundings, path, init, signal);
    } catch (problem) {
      if (!(problem instanceof Problem) || problem.status !== 503 || attempt >= MAX_ATTEMPTS) throw problem;
      onWait(problem.retryAfterSeconds);
      await surroundings.sleep(problem.retryAfterSeconds, signal);
    }
  }
}

async function callOnce({ fetch, token, timeoutSeconds = 60 }, path, init, signal) {
  signal.throwIfAborted();
  const controller = new AbortController();
  const stop = () => controller.abort(signal.reason);
  signal.addEventListener("abort", stop);
  const timer = setTimeout(() => controller.abort(new Problem("timeout")), timeoutSeconds * 1000);
  const headers = { Accept: "application/json", ...init.headers };
  if (token()) headers.Authorization = `Bearer ${token()}`;
  try {
    const response = await fetch(path, { ...init, headers, signal: controller.signal });
    if (!response.ok) throw await readProblem(response);
    return await response.json();
  } catch (error) {
    if (controller.signal.aborted) throw controller.signal.reason;
    throw asProblem(error);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", stop);
  }
}

function asProblem(error) {
  if (error instanceof Problem) return error;
  return new Problem(error instanceof SyntaxError ? "internal" : "offline", { cause: error });
}

async function readProblem(response) {
  const body = await response.json().catch(() => null);
  const type = String(body?.type ?? "");
  const fallback = response.status === 503 ? "not-ready" : "internal";
  const slug = type.startsWith(PROBLEM_TYPE) ? type.slice(PROBLEM_TYPE.length) : fallback;
  const retryAfterSeconds = parseRetryAfter(response.headers.get("Retry-After"));
  return new Problem(slug, { status: response.status, retryAfterSeconds });
}

/**
 * @param {string | null} value
 * @returns {number} Seconds to wait, between 1 and a minute; 2 where the server names none.
 */
export function parseRetryAfter(value) {
  const seconds = value !== null && /^[0-9]+$/.test(value) ? Number(value) : 2;
  return Math.min(Math.max(seconds, 1), MAX_WAIT_SECONDS);
}
