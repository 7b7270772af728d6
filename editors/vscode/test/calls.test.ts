/** Cards of tools and the difference of texts. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { cardOf } from "../src/calls";
import { difference } from "../src/diff";
import { type AnyEvent, INITIAL, reduce, type Run, type State, type ToolCard } from "../src/state";
import { barOf, patches } from "../src/transcript";

const base = { session_id: "s", run_id: "r", seq: 1, ts: 5 };
const after = (...events: AnyEvent[]): State => events.reduce(reduce, INITIAL);
const run = (state: State): Run => state.runs["r"] as Run;
const calls = (name: string, given: object): AnyEvent => ({ ...base, type: "tool_calls", calls: [{ id: "1", name, arguments: given }] });
const result = (success: boolean, more: object = {}): AnyEvent =>
  ({ ...base, type: "tool_result", tool: "", call_id: "1", success, output: "", ...more }) as AnyEvent;
const card = (state: State): ToolCard => run(state).blocks.find((block) => block.kind === "tool") as ToolCard;

/** The new text, made from the old one by a difference without jumps. */
const rebuilt = (lines: readonly string[]): [string[], string[]] => [
  lines.filter((line) => /^[ -]/.test(line)).map((line) => line.slice(1)),
  lines.filter((line) => /^[ +]/.test(line)).map((line) => line.slice(1)),
];

test("a difference leads from one text to the other, with few lines", () => {
  const cases: [string, string, number, number][] = [
    ["a\nb\nc\n", "a\nx\nc\n", 1, 1],
    ["a\nb\n", "a\nb\n", 0, 0],
    ["", "a\nb\n", 2, 0],
    ["a\nb\nc\nd\n", "b\nc\nd\ne\n", 1, 1],
    ["a\nb\nc\na\nb\nb\na\n", "c\nb\na\nb\na\nc\n", 2, 3],
  ];
  for (const [old, now, added, removed] of cases) {
    const found = difference(old, now);
    assert.deepEqual([found.added, found.removed], [added, removed], `${old} -> ${now}`);
    if (added + removed === 0) continue;
    const [before, later] = rebuilt(found.lines);
    assert.ok(old.includes(before.join("\n")) && now.includes(later.join("\n")), found.lines.join("|"));
  }
});

test("far changes are told with a jump, a file that goes or comes is all of one kind", () => {
  const lines = Array.from({ length: 100 }, (_, number) => `line ${number}`);
  const text = (changed: readonly number[]): string => lines.map((line, at) => (changed.includes(at) ? `${line}!` : line)).join("\n");
  const found = difference(text([]), text([3, 90]));
  assert.deepEqual(found.lines.filter((line) => line.startsWith("@")), ["@ 2", "@ 89"]);
  assert.equal(difference("a\n", null).removed, 1);
  assert.equal(difference(null, "a\n").added, 1);
});

test("a card is of the kind of its tool, and an edit shows what it does", () => {
  const kinds = ["edit_file", "run_cmd", "grep", "read_file", "run_tests", "todowrite", "something"].map((name) => cardOf({ name }).card);
  assert.deepEqual(kinds, ["edit", "command", "search", "read", "tests", "todo", "other"]);
  const made = cardOf({ name: "edit_file", arguments: { path: "a.py", old_str: "x = 1", new_str: "x = 2" } });
  assert.deepEqual(made.diff?.filter((line) => /^[+-]/.test(line)), ["-x = 1", "+x = 2"]);
});

test("the change of a file is on the card of its call, counted from what was staged before", () => {
  const change = (text: string): AnyEvent =>
    ({ ...base, type: "file_change", path: "/ws/a.py", change: { path: "/ws/a.py", base: "1\n2\n", text } }) as AnyEvent;
  const state = after(calls("edit_file", { path: "a.py" }), change("1\nx\n"), result(true), calls("edit_file", { path: "a.py" }), change("1\nx\ny\n"));
  const [first, second] = run(state).blocks.filter((block) => block.kind === "tool");
  assert.deepEqual([first?.added, first?.removed, second?.added, second?.removed], [1, 1, 1, 0]);
  assert.deepEqual(barOf(run(state)).files, [{ path: "/ws/a.py", state: "changed", added: 2, removed: 1 }]);
});

test("red tests are failed, whatever they print", () => {
  const red = card(after(calls("run_tests", {}), result(false, { output: "1 failed", error: "1 failed in 3 s", summary: "1 failed in 3 s" })));
  assert.deepEqual([red.state, red.summary], ["failed", "1 failed in 3 s"]);
});

test("what a command prints is kept to its end", () => {
  const output = (content: string): AnyEvent => ({ ...base, type: "step_output", content });
  const state = after(calls("run_cmd", { command: "make" }), output("one\n"), output("two\n"), result(false, { error: "exit code 2", output: "cut" }));
  assert.deepEqual([card(state).output, card(state).error], ["one\ntwo\n", "exit code 2"]);
});

test("what is printed belongs to the first of several calls that has no result", () => {
  const asked = { ...base, type: "tool_calls", calls: [{ id: "t", name: "run_tests" }, { id: "c", name: "run_cmd" }] } as AnyEvent;
  const state = after(asked, { ...base, type: "step_output", content: "OK\n" });
  const outputs = run(state).blocks.map((block) => (block.kind === "tool" ? block.output : undefined));
  assert.deepEqual(outputs, ["OK\n", ""]);
});

test("of a denied call the user reads what is meant for them", () => {
  const denied = card(after(calls("run_cmd", { command: "make" }), result(false, { status: "denied", output: "Do not try again.", summary: "You did not allow it." })));
  assert.equal(denied.error, "You did not allow it.");
});

test("a todo list is what the server says that it is, and a refused call changes nothing", () => {
  const todos = [{ id: "1", content: "one", status: "completed", priority: "high" }, { id: "2", content: "two", status: "pending", priority: "low" }];
  const shown = after(calls("TodoWrite", { todos: [{ content: "one" }] }), result(true, { todos }));
  assert.deepEqual(run(shown).todos.map(({ content, status }) => [content, status]), [["one", "completed"], ["two", "pending"]]);
  const refused = [calls("todowrite", { todos: [{ content: "all", status: "completed" }] }), result(false)].reduce(reduce, shown);
  assert.deepEqual(run(refused).todos, run(shown).todos);
  assert.deepEqual(run([calls("todowrite", { todos: [] }), result(true, { todos: [] })].reduce(reduce, shown)).todos, []);
});

test("words to a run are shown at once, and where the model reads them", () => {
  const said: AnyEvent = { type: "local_said", run_id: "r", session_id: "s", text: "be brief", item_id: "i" };
  const state = after(calls("grep", {}), said);
  assert.deepEqual(run(state).blocks.at(-1), { kind: "said", text: "be brief", itemId: "i", pending: true });
  const read = reduce(reduce(state, result(true)), { ...base, type: "steer_delivered", item_id: "i", text: "be brief" });
  assert.deepEqual(run(read).blocks.filter((block) => block.kind === "said").map((block) => block.pending), [false]);
  assert.ok(patches(state, read).every((patch) => patch.type !== "reset"));
});

test("a session is shown again with its words; what was taken back is marked, and marked no more when that is undone", () => {
  const events = [
    { ...base, type: "run_started", task: "Do it\nwell", title: "Do it" },
    { ...base, type: "token", content: "Done." },
    { ...base, type: "run_completed", status: "completed", summary: "", files_changed: [] },
    { ...base, run_id: "back", type: "session_rewound", what: "both", gone: ["r"], conflicts: [], refused: [], staged: {}, attempts: {} },
  ] as unknown as Extract<AnyEvent, { type: "local_replayed" }>["events"];
  const state = after({ type: "local_replayed", session_id: "s", events });
  assert.deepEqual([run(state).task, run(state).status, run(state).rewound, state.sessionId], ["Do it\nwell", "completed", "both", "s"]);
  const undone = reduce(state, { ...base, run_id: "back", type: "session_restored" });
  assert.equal(run(undone).rewound, undefined);
  assert.equal(reduce(state, { type: "local_replayed", session_id: "s", events }).order.length, 2, "twice is once");
});

test("what a fork began with is shown, and cannot be gone back to: only its words are known", () => {
  const told = (earlier: boolean): unknown => patches(INITIAL, after({ type: "local_replayed", session_id: "s", events: [
    { ...base, type: "run_started", task: "Do it", title: "Do it", ...(earlier && { earlier }) },
    { ...base, type: "token", content: "Done." },
    { ...base, type: "run_completed", status: "completed", summary: "", files_changed: [] },
  ] as unknown as Extract<AnyEvent, { type: "local_replayed" }>["events"] })).flatMap((patch) => (patch.type === "run" ? [patch.own] : []));
  assert.deepEqual([told(false), told(true)], [[true], [false]]);
});
