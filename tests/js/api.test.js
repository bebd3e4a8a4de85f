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
  assert.equal(calls[0].init.body, "{\"question\":\"¿x?\"}");
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

test("a wait is between one second and a minute", () => {
  assert.deepEqual([null, "0", "5", "86400", "soon"].map(parseRetryAfter), [2, 1, 5, 60, 2]);
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
