import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { commands, screen } from "./editor";
import { Prompts } from "../src/prompts";
import { Offered } from "../src/server/offered";
import type { AnyEvent } from "../src/state";
import { Store } from "../src/store";

const base = { session_id: "s", seq: 1, ts: 0, title: "Do it", detail: "" };
const ASKED = { type: "question_asked", choices: ["1", "2"], by_agent: true } as const;
const question = (name: string): AnyEvent =>
  ({ ...base, ...ASKED, run_id: name, request_id: name, title: `Which ${name}?` });
const answered = (name: string): AnyEvent =>
  ({ ...base, run_id: name, type: "question_answered", request_id: name, answer: "" }) as AnyEvent;

const user = { inChat: false };

async function asked(...names: string[]): Promise<{ store: Store; answers: [string, unknown][]; prompts: Prompts }> {
  screen.box?.hide();
  screen.seen.length = 0;
  const store = new Store();
  const answers: [string, unknown][] = [];
  const answering = {
    respond: async (requestId: string, answer: string | readonly string[]) => {
      answers.push([requestId, answer]);
      store.dispatch(answered(requestId));
    },
    review: async () => undefined,
    inChat: () => user.inChat,
  };
  const prompts = new Prompts(store, answering);
  for (const name of names) {
    store.dispatch(question(name));
    await pause(1); // the first is being asked about
  }
  await pause(40);
  return { store, answers, prompts };
}

test("two questions in one moment come one after the other", async () => {
  const { answers } = await asked("number", "colour");
  assert.deepEqual(screen.seen, ["Which number?"]);
  screen.box?.accept();
  await pause(40);
  assert.deepEqual(screen.seen, ["Which number?", "Which colour?"]);
  screen.box?.accept();
  await pause(20);
  assert.deepEqual(answers, [["number", "1"], ["colour", "1"]]);
});

test("a question that is answered elsewhere before its box is there does not come", async () => {
  const { store } = await asked();
  store.dispatch(question("number"));
  store.dispatch(question("colour"));
  store.dispatch(answered("number"));
  await pause(60);
  assert.deepEqual(screen.seen, ["Which colour?"]);
});

test("one that is put off makes room for the next", async () => {
  const { answers } = await asked("number", "colour");
  screen.box?.hide();
  await pause(40);
  assert.deepEqual(screen.seen, ["Which number?", "Which colour?"]);
  assert.deepEqual(answers, []);
});

test("while the user is in the chat no box comes", async () => {
  user.inChat = true;
  const { answers } = await asked("number");
  assert.deepEqual(screen.seen, []);
  screen.box?.hide();
  user.inChat = false;
  const later = await asked("colour");
  assert.deepEqual(screen.seen, ["Which colour?"]);
  screen.box?.accept();
  await pause(20);
  assert.deepEqual([...answers, ...later.answers], [["colour", "1"]]);
});

test("the chat does not ask for a secret", async () => {
  user.inChat = true;
  const { prompts, store } = await asked("key");
  assert.deepEqual(screen.seen, []);
  void prompts.input("key", true);
  await pause(20);
  assert.deepEqual(screen.seen, ["Which key?"]);
  store.dispatch(answered("key"));
  user.inChat = false;
});

test("what a menu offers runs after its list was renewed, with what it was offered for", async () => {
  const ran: unknown[] = [];
  commands.registerCommand("codeagent.edit", (place) => ran.push(place));
  const offered = new Offered("test.offered");
  const action = (line: number): { title: string; command: { title: string; command: string; arguments: unknown[] } } => ({
    title: "Edit", command: { title: "Edit", command: "codeagent.edit", arguments: [{ line }] },
  });
  const [first] = offered.actions([action(1)]) ?? [];
  const [second] = offered.actions([action(2)]) ?? [];
  const [again] = offered.actions([action(1)]) ?? [];
  assert.equal(first?.command.arguments, undefined, "the editor would drop them with the list");
  assert.equal(again?.command.command, first?.command.command);
  await commands.executeCommand(first?.command.command ?? "");
  await commands.executeCommand(second?.command.command ?? "");
  assert.deepEqual(ran, [{ line: 1 }, { line: 2 }]);
  for (let line = 3; line < 600; line++) offered.actions([action(line)]); // the ring goes round
  assert.deepEqual(offered.keep({ title: "Plain", command: "plain" }), { title: "Plain", command: "plain" });
});
