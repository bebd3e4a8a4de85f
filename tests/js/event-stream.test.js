import assert from "node:assert/strict";
import { test } from "node:test";
import { readEvents } from "../../static/event-stream.js";

/** A stream of some chunks, text or bytes; `ends` may be an error, or false for a stream that stays open. */
function streamOf(chunks, { ends = true, cancelled = () => {} } = {}) {
  const encoder = new TextEncoder();
  const waiting = chunks.map((chunk) => (typeof chunk === "string" ? encoder.encode(chunk) : chunk));
  return new ReadableStream({
    pull(controller) {
      if (waiting.length > 0) controller.enqueue(waiting.shift());
      else if (ends instanceof Error) controller.error(ends);
      else if (ends) controller.close();
      else return new Promise(() => {});
      return undefined;
    },
    cancel: cancelled,
  }, { highWaterMark: 0 });
}

async function eventsOf(...chunks) {
  const events = [];
  for await (const { event, data } of readEvents(streamOf(chunks))) events.push([event, data]);
  return events;
}

test("an event has a name and data, the name being message where none is given", async () => {
  assert.deepEqual(await eventsOf("event: answer\ndata: {\"a\": 1}\n\ndata:b\n\n"), [
    ["answer", "{\"a\": 1}"], ["message", "b"],
  ]);
});

test("several lines of data are joined, and only one space after the colon goes", async () => {
  assert.deepEqual(await eventsOf("data:  a\ndata\ndata: b: c\n\n"), [["message", " a\n\nb: c"]]);
});

test("comments and unknown fields are passed over, also between the lines of an event", async () => {
  assert.deepEqual(await eventsOf(": hello\n\nid: 7\nretry: 5\ndata: a\n:data: x\nDATA: y\n data: z\ndata: b\n\n"), [
    ["message", "a\nb"],
  ]);
});

test("a name without data is no event, and does not stick to the next", async () => {
  assert.deepEqual(await eventsOf("event: a\n\ndata: 1\n\nevent: b\ndata:\n\n"), [["message", "1"], ["b", ""]]);
});

test("an unfinished last block is dropped", async () => {
  assert.deepEqual(await eventsOf("data: 1\n\ndata: 2\n"), [["message", "1"]]);
  assert.deepEqual(await eventsOf("data: 1\r\rdata: 2"), [["message", "1"]]);
  assert.deepEqual(await eventsOf(), []);
});

test("a mark of byte order counts only as the first", async () => {
  assert.deepEqual(await eventsOf("\ufeffdata: 1\n\n\ufeffdata: 2\ndata: \ufeff3\n\n"), [
    ["message", "1"], ["message", "\ufeff3"],
  ]);
});

test("wherever the bytes are parted, in a character or a line's end, the events are the same", async () => {
  for (const end of ["\n", "\r\n", "\r"]) {
    const text = ["\ufeffevent: trozo", "data: ¿qué 😀?", "data: dos", "", ": nada", "data: tres", "", ""].join(end);
    const bytes = new TextEncoder().encode(text);
    const whole = [["trozo", "¿qué 😀?\ndos"], ["message", "tres"]];
    for (let at = 0; at <= bytes.length; at += 1) {
      assert.deepEqual(await eventsOf(bytes.slice(0, at), bytes.slice(at)), whole, `${JSON.stringify(end)} at ${at}`);
    }
    assert.deepEqual(await eventsOf(...Array.from(bytes, (byte) => Uint8Array.of(byte))), whole);
  }
});

test("an event is there before the next chunk is, whatever ends its lines", async () => {
  for (const end of ["\n", "\r\n", "\r"]) {
    const events = readEvents(streamOf([`data: 1${end}${end}`], { ends: false }));
    assert.deepEqual((await events.next()).value, { event: "message", data: "1" });
  }
});

test("a stream that nobody reads on is cancelled", async () => {
  let cancelled = 0;
  const stream = streamOf(["data: 1\n\ndata: 2\n\n"], { ends: false, cancelled: () => { cancelled += 1; } });
  for await (const { data } of readEvents(stream)) {
    assert.equal(data, "1");
    break;
  }
  assert.equal(cancelled, 1);
});

test("the failure of a stream comes out after the events before it", async () => {
  const seen = [];
  await assert.rejects(async () => {
    const stream = streamOf(["data: 1\n\n", "data: 2\n"], { ends: new TypeError("network error") });
    for await (const { data } of readEvents(stream)) seen.push(data);
  }, { name: "TypeError", message: "network error" });
  assert.deepEqual(seen, ["1"]);
});
