import assert from "node:assert/strict";
import { test } from "node:test";
import { createApi, parseRetryAfter, Problem } from "../../static/api.js";
import { Latest, sleep } from "../../static/latest.js";

const reply = (status, body, headers = {}) => new Response(JSON.stringify(body), { status, headers });
const problem = (status, slug, headers) => reply(status, { type: `urn:fichero:problem:${slug}` }, headers);
const { signal } = new AbortController();

/** An API over a list of replies; an `Error` among them is thrown. */
function apiOver(replies, { token = null, ...more } = {}) {
  const calls = [];
  const waits = [];
  const fetch = async (path, init) => {
    calls.push({ path, init });
    const next = replies.shift();
    if (next instanceof Error) throw next;
    return next;
  };
  const pause = async (seconds) => void waits.push(seconds);
  return { api: createApi({ fetch, token: () => token, sleep: pause, ...more }), calls, waits };
}

test("a question is sent as JSON, with the token if there is one", async () => {
  const { api, calls } = apiOver([reply(200, { question: "¿x?" })], { token: "abc" });
  assert.deepEqual(await api.ask("¿x?", { signal }), { question: "¿x?" });
  assert.equal(calls[0].init.body, "{\"question\":\"¿x?\",\"stream\":true}");
  assert.equal(calls[0].init.headers.Authorization, "Bearer abc");
});

test("a problem comes out by its slug", async () => {
  const { api } = apiOver([problem(401, "unauthorized")]);
  await assert.rejects(api.ask("x", { signal }), { name: "Problem", slug: "unauthorized", status: 401 });
});

test("a failure that is no problem document is still a problem", async () => {
  const page = () => new Response("<html>", { status: 502 });
  await assert.rejects(apiOver([page()]).api.listCards({ signal }), { slug: "internal" });
  await assert.rejects(apiOver([new Response("<html>")]).api.listCards({ signal }), { slug: "internal" });
  await assert.rejects(apiOver([new TypeError("fetch failed")]).api.listCards({ signal }), { slug: "offline" });
});

test("a server that is starting is asked again after the time it names", async () => {
  const starting = () => problem(503, "not-ready", { "Retry-After": "7" });
  const { api, calls, waits } = apiOver([starting(), starting(), reply(200, { cards: [] })]);
  const told = [];
  await api.listCards({ signal, onWait: (seconds) => told.push(seconds) });
  assert.equal(calls.length, 3);
  assert.deepEqual([waits, told], [[7, 7], [7, 7]]);
});

test("a wait is between one second and an hour", () => {
  assert.deepEqual([null, "0", "5", "86400", "soon"].map(parseRetryAfter), [2, 1, 5, 3600, 2]);
});

test("a server that never answers is a timeout", async () => {
  const fetch = (_path, init) => new Promise((_, reject) => {
    init.signal.addEventListener("abort", () => reject(init.signal.reason));
  });
  const api = createApi({ fetch, token: () => null, sleep, timeoutSeconds: 0.01 });
  await assert.rejects(api.ask("x", { signal }), { slug: "timeout" });
});

test("a late reply never overwrites a newer one", async () => {
  const shown = [];
  const latest = new Latest();
  const show = { done: (value) => shown.push(value), failed: (error) => shown.push(error) };
  let finishFirst;
  const first = latest.run(() => new Promise((resolve) => { finishFirst = resolve; }), show);
  await latest.run(async () => "second", show);
  finishFirst("first");
  await first;
  assert.deepEqual(shown, ["second"]);
});

test("stopped work reports nothing, and failed work its failure", async () => {
  const shown = [];
  const latest = new Latest();
  const show = { done: (value) => shown.push(value), failed: (error) => shown.push(error.slug) };
  const stopped = latest.run((abort) => sleep(60, abort), show);
  assert.equal(latest.stop(), true);
  await stopped;
  assert.equal(latest.stop(), false);
  await latest.run(async () => { throw new Problem("offline"); }, show);
  assert.deepEqual(shown, ["offline"]);
});

const stream = (...blocks) => new Response(blocks.join(""), { headers: { "Content-Type": "text/event-stream" } });
const block = (event, data) => `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;

test("an answer in pieces is handed on as it comes, and is the object at its end", async () => {
  const blocks = [": hello\n\n", block("sources", { retrieved: [] }), block("delta", { text: "a" }), block("done", { b: 1 })];
  const { api, calls } = apiOver([stream(...blocks)]);
  const seen = [];
  const history = [{ question: "y", answer: "z" }];
  const answer = await api.ask("x", { signal, history, onEvent: (event, value) => seen.push([event, value]) });
  assert.deepEqual(answer, { b: 1 });
  assert.deepEqual(seen, [["sources", { retrieved: [] }], ["delta", { text: "a" }]]);
  assert.deepEqual(JSON.parse(calls[0].init.body), { question: "x", stream: true, history });
});

test("a stream that ends without an answer is interrupted, and a problem in it is one", async () => {
  const delta = block("delta", { text: "a" });
  await assert.rejects(apiOver([stream(delta)]).api.ask("x", { signal }), { slug: "interrupted" });
  const failed = block("error", { type: "urn:fichero:problem:not-ready", status: 503 });
  await assert.rejects(apiOver([stream(delta, failed)]).api.ask("x", { signal }), { slug: "not-ready" });
  await assert.rejects(apiOver([stream("data: {")]).api.ask("x", { signal }), { slug: "interrupted" });
  await assert.rejects(apiOver([stream("event: delta\ndata: {\n\n")]).api.ask("x", { signal }), { slug: "internal" });
});

test("every piece of a stream is a sign of life", async () => {
  const pieces = [": a\n\n", ": b\n\n", ": c\n\n", block("done", { b: 1 })];
  const body = new ReadableStream({
    async pull(controller) {
      await new Promise((resolve) => setTimeout(resolve, 60));
      if (pieces.length === 0) controller.close();
      else controller.enqueue(new TextEncoder().encode(pieces.shift()));
    },
  });
  const streamed = new Response(body, { headers: { "Content-Type": "text/event-stream" } });
  const { api } = apiOver([streamed], { timeoutSeconds: 0.15 });
  assert.deepEqual(await api.ask("x", { signal }), { b: 1 });
});

test("a token may be given for one call", async () => {
  const { api, calls } = apiOver([reply(200, { groups: [] })], { token: "abc" });
  await api.whoAmI({ signal, token: "def" });
  assert.equal(calls[0].init.headers.Authorization, "Bearer def");
});

test("too many questions are a problem that says how long it takes", async () => {
  const { api } = apiOver([problem(429, "rate-limited", { "Retry-After": "90" })]);
  await assert.rejects(api.ask("x", { signal }), { slug: "busy", retryAfterSeconds: 90 });
});
