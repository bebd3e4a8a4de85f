/**
 * Server-sent events as they come; what a broken connection leaves unfinished is none.
 *
 * @param {ReadableStream<Uint8Array>} stream Cancelled when nobody wants more.
 * @returns {AsyncGenerator<StreamEvent, void>}
 */
export async function* readEvents(stream) {
  let event = "";
  let data = [];
  for await (const line of readLines(stream)) {
    const [, field, value] = /^([^:]*):? ?(.*)/s.exec(line);
    if (field === "event") event = value;
    else if (field === "data") data.push(value);
    else if (line === "") {
      if (data.length > 0) yield { event: event || "message", data: data.join("\n") };
      event = "";
      data = [];
    }
  }
}

/** The lines that have ended, each as soon as its first sign of an end is there. */
async function* readLines(stream) {
  const reader = stream.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  let endedByReturn = false;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const text = decoder.decode(value, { stream: true });
      if (text === "") continue;
      const lines = text.slice(endedByReturn && text[0] === "\n" ? 1 : 0).split(/\r\n?|\n/);
      endedByReturn = text.endsWith("\r");
      lines[0] = rest + lines[0];
      rest = lines.pop();
      yield* lines;
    }
  } finally {
    reader.cancel().catch(() => {}); // A stream that has failed has said so already.
  }
}
