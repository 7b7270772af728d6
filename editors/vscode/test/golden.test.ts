/** The reducer replays what the server's tests recorded and ends where every client must end. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { type AnyEvent, type Block, condition, INITIAL, reduce, type State } from "../src/state";

const FOLDER = path.join(__dirname, "..", "..", "..", "tests", "clients", "golden");
const NAMES = readdirSync(FOLDER).filter((name) => name.endsWith(".jsonl"));

test("there are recordings", () => assert.ok(NAMES.length > 0));

for (const name of NAMES) {
  test(`replays ${name}`, () => {
    const expected = JSON.parse(readFileSync(path.join(FOLDER, name.replace(".jsonl", ".json")), "utf8")) as unknown;
    assert.deepEqual(shown(replay(name)), withoutOutput(expected));
  });

  test(`does not change an earlier state: ${name}`, () => {
    let state = INITIAL;
    for (const event of events(name)) {
      const before = JSON.stringify(state);
      const after = reduce(state, event);
      assert.equal(JSON.stringify(state), before);
      state = after;
    }
  });
}

/** What a command printed last is in the recordings; here its card has more of it. */
function withoutOutput(expected: unknown): unknown {
  return JSON.parse(JSON.stringify(expected, function (this: { kind?: string }, key, value: unknown) {
    return key === "output" && this.kind === "tool" ? undefined : value;
  }));
}

function events(name: string): AnyEvent[] {
  const lines = readFileSync(path.join(FOLDER, name), "utf8").split("\n").filter(Boolean);
  return lines.map((line) => JSON.parse(line) as AnyEvent);
}

function replay(name: string): State {
  return events(name).reduce(reduce, INITIAL);
}

/** The state in the words of the recordings. */
function shown(state: State): unknown {
  const runs = state.order.map((id) => {
    const run = state.runs[id];
    assert.ok(run);
    const { runId: run_id, sessionId: session_id, mode, status, outcome, error, activity, usage } = run;
    const plan = run.plan && {
      goal: run.plan.goal,
      state: run.plan.state,
      steps: run.plan.steps.map(({ stepId: step_id, title, state: at, error: why }) => ({ step_id, title, state: at, error: why })),
    };
    const staged = Object.keys(run.staged).sort();
    return { run_id, session_id, mode, status, outcome, error, activity, staged, plan, usage, blocks: run.blocks.map(blockShown) };
  });
  const questions = state.questions.map(({ requestId: request_id, runId: run_id, title, detail, choices, approval }) => ({
    request_id, run_id, title, detail, choices, approval,
  }));
  return JSON.parse(JSON.stringify({ condition: condition(state), questions, runs }));
}

/** What this client alone knows of a block: how a call of a tool is drawn, what a question is about. */
const OWN: Partial<Record<Block["kind"], readonly string[]>> = {
  tool: ["card", "output", "diff", "added", "removed", "summary", "ms"],
  question: ["detail", "aboutChanges", "byAgent", "multiple"],
  said: ["itemId", "pending"],
  error: ["code"],
  ended: ["code"],
};

function blockShown(block: Block): object {
  const snake = (key: string): string => key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return Object.fromEntries(Object.entries(block).filter(([key]) => !OWN[block.kind]?.includes(key)).map(([key, value]) => [snake(key), value as unknown]));
}
