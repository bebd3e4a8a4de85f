import assert from "node:assert/strict";
import { test } from "node:test";
import { historyOf } from "../../static/history.js";

const answered = (question, answer = "a", more = {}) => ({ question, answer, refusal: null, ...more });

test("the latest eight answered questions go along, the oldest first", () => {
  const answers = Array.from({ length: 10 }, (_, at) => answered(`q${at}`));
  assert.deepEqual(historyOf(answers).map(({ question }) => question), answers.slice(2).map(({ question }) => question));
  assert.deepEqual(historyOf([]), []);
});

test("a refusal and a stopped answer are nothing to lean on", () => {
  const answers = [answered("a"), answered("b", "", { refusal: {} }), answered("c", "x", { stopped: true })];
  assert.deepEqual(historyOf(answers), [{ question: "a", answer: "a" }]);
});

test("a long answer is cut, at a whole character, and what is too much in all begins later", () => {
  const answers = Array.from({ length: 8 }, (_, at) => answered(`${at}`, "😀".repeat(3000)));
  const turns = historyOf(answers);
  assert.equal(turns[0].answer, "😀".repeat(2000));
  assert.ok(new TextEncoder().encode(JSON.stringify(turns)).length <= 32_000);
  assert.equal(turns.at(-1).question, "7");
});
