import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type AnyEvent, attemptsOf, cachedPercent, condition, INITIAL, newest, position, reduce, type State, undoable, withChanges, working,
} from "../src/state";
import type { StepChange } from "../src/chat";
import type { Step } from "../src/model";
import { arranged } from "../src/runState";
import { patches } from "../src/transcript";

const base = { session_id: "s", run_id: "r", seq: 1, ts: 0 };
const start: AnyEvent = { ...base, type: "response_start", mode: "direct" };
const file = (change?: Record<string, unknown>): AnyEvent =>
  ({ ...base, type: "file_change", path: "/ws/a.py", ...(change ? { change } : {}) }) as AnyEvent;
const proposed: AnyEvent = {
  ...base, type: "changes_proposed", summary: "Apply a.py?", files_changed: ["/ws/a.py"], added: 1, removed: 1,
};
const approval = (title: string): AnyEvent => ({
  ...base, type: "approval_requested", request_id: "q", title, detail: "", choices: ["Review", "Apply", "Discard"],
});
const applied = (undo: boolean, steps: readonly string[] = []): AnyEvent => ({
  ...base, type: "changes_applied", outcome: "full", files_changed: ["/ws/a.py"], conflicts: [], undo, applied: [], steps,
});
const completed = (status: "completed" | "failed" | "cancelled"): AnyEvent => ({
  ...base, type: "run_completed", status, summary: "", files_changed: [],
});
/** The same event of another run. */
const of = (run: string, event: AnyEvent): AnyEvent => ({ ...event, run_id: run, session_id: `s-${run}` }) as AnyEvent;
const attempt = (run: string): AnyEvent => of(run, { ...start, attempt_of: "r", attempt: Number(run.slice(1)) } as AnyEvent);
const request: AnyEvent = { type: "local_request", run_id: "r", session_id: "s", title: "Do it", ts: 5 };
const after = (...events: AnyEvent[]): State => events.reduce(reduce, INITIAL);

test("a run is at work from its first event to its last", () => {
  assert.equal(condition(after(start)), "working");
  assert.equal(condition(after(start, completed("completed"))), "idle");
  assert.equal(condition(after(start, completed("cancelled"))), "idle");
  assert.equal(condition(after(start, completed("failed"))), "error");
});

test("the seconds of a run are counted from the request, as its first event comes with the model's first words", () => {
  assert.equal(after(request).runs["r"]?.began, 5);
});

test("a run of another agent has its title from its first event, and is not what the user has at work", () => {
  const lent = of("b", { ...start, beside: "The editor lent to another" } as AnyEvent);
  assert.equal(newest(after(request, start, lent))?.title, "The editor lent to another");
  assert.equal(after(request, start, lent).sessionId, "s");
  assert.equal(working(after(request, start, lent))?.runId, "r");
  assert.equal(condition(after(request, start, lent, completed("completed"))), "idle");
});

test("the share of the prompts that came from the cache", () => {
  const usage = (prompt: number, cached: number): AnyEvent => ({
    ...base, type: "usage", prompt_tokens: prompt, cached_tokens: cached, completion_tokens: 1, cost: 0.1,
  });
  assert.equal(cachedPercent(newest(after(start))), 0);
  assert.equal(cachedPercent(newest(after(start, usage(100, 0)))), 0);
  assert.equal(cachedPercent(newest(after(start, usage(100, 0), usage(200, 190)))), 63);
});

test("a question waits until it is answered", () => {
  const asked = after(start, approval("Run this?"));
  assert.equal(condition(asked), "waiting");
  assert.equal(asked.questions[0]?.aboutChanges, false);
  const answer: AnyEvent = { ...base, type: "approval_resolved", request_id: "q", answer: "Apply" };
  assert.deepEqual(reduce(asked, answer).questions, []);
});

test("a question that belongs to no run waits, and is shown without a run", () => {
  const aside = (event: AnyEvent): AnyEvent => ({ ...event, run_id: "", session_id: "" }) as AnyEvent;
  const before = after(start);
  const asked = reduce(before, aside(approval("Another agent wants this editor. Allow it?")));
  assert.equal(condition(asked), "waiting");
  assert.deepEqual(asked.runs, before.runs);
  const [told] = patches(before, asked);
  assert.ok(told?.type === "aside" && told.questions.length === 1);
  assert.deepEqual(patches(asked, asked), []);
  const over = reduce(asked, aside({ ...base, type: "approval_resolved", request_id: "q", answer: "Allow" }));
  assert.deepEqual(patches(asked, over), [{ type: "aside", questions: [] }]);
});

test("open questions stand above the input, the one about the changes as the buttons of their bar", () => {
  const above = (state: State): readonly string[] =>
    patches(undefined, state).flatMap((patch) => (patch.type === "aside" ? patch.questions.map(({ title, byAgent }) => `${title} ${byAgent}`) : []));
  const asked: AnyEvent = { ...base, type: "question_asked", request_id: "p", title: "Which?", detail: "", choices: [], by_agent: true };
  const staged = file({ path: "/ws/a.py", base: "1\n", text: "2\n", version: null, moved_from: null });
  assert.deepEqual(above(after(start, asked)), ["Which? true"]);
  assert.deepEqual(above(after(start, asked, { ...base, type: "question_answered", request_id: "p", answer: "this" } as AnyEvent)), []);
  assert.deepEqual(above(after(start, staged, proposed, approval("Apply a.py?"))), []);
  assert.deepEqual(above(after(start, proposed, approval("Apply a.py?"))), ["Apply a.py? false"], "there is no bar");
});

test("what another program changed is kept or reverted, in those words, and is not run again", () => {
  const applied = (verdict: string): AnyEvent => ({
    ...base, type: "changes_applied", outcome: "full", files_changed: ["/ws/a.py"], conflicts: [], undo: false, applied: [], steps: [], verdict,
  } as AnyEvent);
  const foreign = after(request, { ...start, foreign: true } as AnyEvent, proposed);
  assert.equal(newest(after(request, start))?.foreign, undefined);
  const shown = patches(undefined, foreign);
  assert.equal(shown.find((patch) => patch.type === "run")?.own, false);
  assert.equal(shown.find((patch) => patch.type === "bar")?.run, "");
  const kept = newest(reduce(foreign, applied("kept")));
  assert.deepEqual([kept?.applied, kept?.inFiles], [false, []], "what is kept was never ours to undo");
  const reverted = newest(reduce(foreign, applied("reverted")));
  assert.deepEqual([reverted?.applied, reverted?.inFiles], [true, ["/ws/a.py"]]);
});

test("pictures that went along stand with their run, once, also when it had to wait", () => {
  const pictures = [{ name: "a.png", data: "AA==" }];
  const sent: AnyEvent = { type: "local_pictures", run_id: "r", pictures };
  const told = { type: "sent", run: "r", pictures };
  const begun = after(sent, request, start);
  assert.deepEqual(patches(undefined, begun).filter((patch) => patch.type === "sent"), [told]);
  assert.deepEqual(patches(begun, reduce(begun, completed("completed"))).filter((patch) => patch.type === "sent"), []);
  const waits = after({ type: "local_queued", run_id: "r", session_id: "s", title: "Do it" }, sent);
  assert.deepEqual(patches(INITIAL, waits).filter((patch) => patch.type === "sent"), []);
  assert.deepEqual(patches(waits, reduce(waits, start)).filter((patch) => patch.type === "sent"), [told]);
  assert.deepEqual(reduce(reduce(begun, completed("completed")), { type: "local_clear" }).pictures, {});
});

test("the question about changes is known as such, also that of a step", () => {
  assert.equal(after(start, proposed, approval("Apply a.py?")).questions[0]?.aboutChanges, true);
  assert.equal(after(start, proposed, approval("Step 1/2 one: Apply a.py?")).questions[0]?.aboutChanges, true);
});

test("staged files come and go", () => {
  const staged = after(start, file({ path: "/ws/a.py", base: "1\n", text: "2\n", version: null, moved_from: null }));
  assert.deepEqual(withChanges(staged)?.staged["/ws/a.py"], { path: "/ws/a.py", base: "1\n", text: "2\n", movedFrom: undefined });
  assert.equal(withChanges(reduce(staged, file())), undefined);
});

test("a created file has no base and a deleted one no text", () => {
  const made = after(file({ path: "/ws/a.py", base: null, text: "2\n" }));
  assert.equal(withChanges(made)?.staged["/ws/a.py"]?.base, null);
  const gone = after(file({ path: "/ws/a.py", base: "1\n", text: null }));
  assert.equal(withChanges(gone)?.staged["/ws/a.py"]?.text, null);
});

test("a file of a run is undone by itself, the others stay until they are", () => {
  const came = (undo: boolean, paths: readonly string[], more: object = {}): AnyEvent => ({ ...applied(undo), files_changed: paths, ...more }) as AnyEvent;
  const inFiles = (...events: AnyEvent[]): readonly string[] | undefined => newest(after(start, ...events))?.inFiles;
  const both = came(false, ["/ws/a.py", "/ws/b.py"]);
  const one = came(true, ["/ws/a.py"], { only: ["/ws/a.py"] });
  assert.deepEqual(inFiles(both, came(false, ["/ws/a.py"])), ["/ws/a.py", "/ws/b.py"]);
  assert.deepEqual(inFiles(both, one), ["/ws/b.py"]);
  assert.ok(undoable(after(start, both, one)));
  assert.deepEqual(inFiles(both, one, came(true, ["/ws/b.py"], { only: ["/ws/b.py"] })), []);
  assert.equal(undoable(after(start, both, one, came(true, ["/ws/b.py"], { only: ["/ws/b.py"] }))), undefined);
  assert.deepEqual(inFiles(both, came(true, ["/ws/b.py"], { refused: ["/ws/a.py"] })), ["/ws/a.py"], "the editor did not change it");
  assert.deepEqual(inFiles(both, came(true, [], { outcome: "none" })), ["/ws/a.py", "/ws/b.py"]);
});

test("what was applied can be undone until it was", () => {
  assert.ok(undoable(after(start, applied(false))));
  assert.equal(undoable(after(start, applied(false), applied(true))), undefined);
  assert.ok(undoable(after(start, applied(false), applied(true, ["2"]))), "one step of several");
});

test("the end of the server ends runs and questions", () => {
  const state = after(start, approval("Run this?"), { type: "local_gone" });
  assert.equal(newest(state)?.status, "lost");
  assert.ok(newest(state)?.blocks.every((block) => block.kind !== "question" || !block.open));
  assert.deepEqual(state.questions, []);
  assert.equal(working(state), undefined);
});

test("staged changes outlive the server", () => {
  const state = after(start, file({ path: "/ws/a.py", base: "1", text: "2" }), { type: "local_gone" });
  assert.ok(withChanges(state));
});

test("the request gives a run its title, before or after its first event", () => {
  assert.equal(newest(after(request, start))?.title, "Do it");
  assert.equal(newest(after(start, request))?.title, "Do it");
});

test("an unknown event changes nothing", () => {
  const state = after(start);
  assert.equal(reduce(state, { ...base, type: "of_tomorrow" } as unknown as AnyEvent), state);
});

test("tokens join; a tool between them begins a new text", () => {
  const token = (content: string): AnyEvent => ({ ...base, type: "token", content });
  const calls: AnyEvent = { ...base, type: "tool_calls", calls: [{ id: "1", name: "grep", arguments: { pattern: "x  y" } }] };
  const blocks = newest(after(token("a"), token("b"), calls, token("c")))?.blocks;
  assert.deepEqual(blocks?.map((block) => block.kind), ["text", "tool", "text"]);
  assert.ok(blocks?.[1]?.kind === "tool" && blocks[1].subject === "x y");
});

test("what a call is about is what the server says, else what its arguments say", () => {
  const subject = (name: string, given: object, told?: string): string | undefined => {
    const calls: AnyEvent = { ...base, type: "tool_calls", calls: [{ id: "1", name, arguments: given, subject: told }] };
    const block = newest(after(calls))?.blocks[0];
    return block?.kind === "tool" ? block.subject : undefined;
  };
  assert.equal(subject("read_file", { path: "/w/a.py" }, "a.py"), "a.py");
  assert.equal(subject("read_file", { path: "b.py" }), "b.py");
  assert.equal(subject("apply_patch", { patch: "…" }, "a.py, b.py"), "a.py, b.py");
  assert.equal(subject("todoread", {}), "");
});

test("thoughts join in a block of their own", () => {
  const thought = (content: string): AnyEvent => ({ ...base, type: "thought", content });
  const run = newest(after(thought("First this.\n"), thought("Then that."), { ...base, type: "token", content: "Done." }));
  assert.deepEqual(run?.blocks, [{ kind: "thought", text: "First this.\nThen that." }, { kind: "text", text: "Done." }]);
});

test("where a plan stands", () => {
  const steps = [
    { stepId: "1", title: "one", description: "", state: "completed" as const },
    { stepId: "2", title: "two", description: "", state: "pending" as const },
  ];
  assert.deepEqual(position({ goal: "", state: "running", steps }), { number: 2, of: 2, title: "two" });
  assert.equal(position({ goal: "", state: "completed", steps: steps.slice(0, 1) }), undefined);
});

test("the transcript is told only what changed", () => {
  const token = (content: string): AnyEvent => ({ ...base, type: "token", content });
  const first = after(start, token("Hello"));
  assert.deepEqual(patches(undefined, first).map((patch) => patch.type), ["reset", "run", "block", "bar", "busy"]);
  const second = reduce(first, token(" world"));
  assert.deepEqual(patches(first, second), [{ type: "append", run: "r", index: 0, text: " world" }]);
  assert.deepEqual(patches(second, second), []);
  const ended = reduce(second, completed("completed"));
  assert.equal(patches(ended, reduce(ended, { type: "local_clear" }))[0]?.type, "reset");
});

test("500 events a second leave time for the rest", () => {
  const started = performance.now();
  let state = after(start);
  for (let index = 0; index < 5000; index++) {
    const calls: AnyEvent = { ...base, type: "tool_calls", calls: [{ id: String(index), name: "grep", arguments: {} }] };
    state = reduce(reduce(state, { ...base, type: "token", content: "x".repeat(100) }), calls);
  }
  const each = (performance.now() - started) / 10_000;
  assert.ok(each < 0.5, `${each.toFixed(3)} ms an event with 10,000 blocks`);
});

test("changes of an earlier window wait as they did, and are decided on as usual", () => {
  const files = [{ path: "/ws/a.py", base: "1", text: "2" }];
  const restored: AnyEvent = { type: "local_restored", run_id: "r", session_id: "s", title: "Do it", files, added: 1, removed: 1 };
  const state = after(restored);
  assert.equal(withChanges(state)?.title, "Do it");
  assert.equal(condition(state), "idle");
  assert.equal(withChanges(after(restored, applied(false), file())), undefined);
});

// --- attempts

const change = { path: "/ws/a.py", base: "1", text: "2" };

test("attempts are parts of their run: nothing is decided about them, undone or stopped by default", () => {
  const state = after(request, attempt("a2"), attempt("a1"), of("a2", file(change)), of("a2", applied(false)));
  assert.equal(newest(state)?.runId, "r");
  assert.equal(working(state)?.runId, "r");
  assert.equal(withChanges(state), undefined);
  assert.equal(undoable(state), undefined);
  assert.deepEqual(attemptsOf(state, "r").map((run) => run.attempt), [1, 2]);
  assert.equal(state.runs["r"]?.attempt, undefined);
});

test("an attempt that failed is no error when its run went well", () => {
  const failed = after(request, attempt("a1"), attempt("a2"), start, completed("completed"), of("a2", completed("failed")));
  assert.equal(condition(failed), "idle");
});

test("a run from the queue is known by its first attempt, under its title", () => {
  const state = after({ type: "local_queued", run_id: "r", session_id: "s", title: "Do it" }, attempt("a1"));
  assert.deepEqual(state.order, ["r", "a1"]);
  assert.equal(working(state)?.title, "Do it");
});

test("the transcript stays with the run until the user chooses an attempt", () => {
  const token: AnyEvent = { ...base, type: "token", content: "x" };
  const before = after(request, attempt("a1"), attempt("a2"));
  assert.deepEqual(patches(before, reduce(before, of("a2", token))), []);
  const chosen = reduce(before, { type: "local_shown", run_id: "a2" });
  const told = patches(before, chosen);
  assert.ok(told.some((patch) => patch.type === "run" && patch.run === "a2" && patch.attempt === 2));
  assert.ok(told.every((patch) => !("run" in patch) || patch.run !== "a1"));
  assert.deepEqual(patches(chosen, reduce(chosen, of("a2", token))).map((patch) => patch.type), ["block"]);
  const back = patches(chosen, reduce(chosen, { type: "local_shown", run_id: "r" }));
  assert.deepEqual(back.map((patch) => patch.type), ["reset", "run"]);
});

test("a run that comes into sight in the transcript is told as a whole", () => {
  const token: AnyEvent = { ...base, type: "token", content: "x" };
  const before = after(request, attempt("a1"), of("a1", token));
  const chosen = reduce(before, { type: "local_shown", run_id: "a1" });
  assert.deepEqual(patches(before, chosen).map((patch) => patch.type), ["run", "block"]);
});

// --- sessions

test("only the user changes the session: no event of a run does", () => {
  const asked = after(request, attempt("a1"), of("other", start));
  assert.equal(asked.sessionId, "s");
  const moved = [{ type: "local_clear" }, { type: "local_session", session_id: "new" }, start] as AnyEvent[];
  assert.equal(moved.reduce(reduce, asked).sessionId, "new");
  assert.equal(after(start).sessionId, undefined);
});

test("the session of a request, of a queued one, and of changes of an earlier window where none is known", () => {
  const restored: AnyEvent = { type: "local_restored", run_id: "r", session_id: "old", title: "", files: [], added: 0, removed: 0 };
  assert.equal(after(request).sessionId, "s");
  assert.equal(after({ type: "local_queued", run_id: "r", session_id: "s", title: "" }).sessionId, "s");
  assert.equal(after(restored).sessionId, "old");
  assert.equal(after(request, restored).sessionId, "s");
});

test("a new session keeps what is at work and what is asked", () => {
  const asked = after(of("done", start), of("done", completed("completed")), request, start, attempt("a1"), approval("Run this?"));
  const state = reduce(asked, { type: "local_clear" });
  assert.deepEqual(state.order, ["r", "a1"]);
  assert.equal(state.runs["r"]?.title, "Do it");
  assert.equal(condition(state), "waiting");
  const ended = [{ ...base, type: "approval_resolved", request_id: "q" }, completed("completed"), { type: "local_clear" }] as AnyEvent[];
  assert.deepEqual(ended.reduce(reduce, state).order, []);
});

test("a change of a plan is made to the plan as it is by now", () => {
  const steps = ["a", "b", "c"].map((stepId): Step => ({ stepId, title: stepId.toUpperCase(), description: "", state: "pending" }));
  const titles = (change: StepChange): string | undefined => arranged(steps, change)?.map(({ title }) => title).join("");
  assert.equal(titles({ do: "up", stepId: "c" }), "ACB");
  assert.equal(titles({ do: "up", stepId: "a" }), "ABC");
  assert.equal(titles({ do: "down", stepId: "a" }), "BAC");
  assert.equal(titles({ do: "down", stepId: "c" }), "ABC");
  assert.equal(titles({ do: "drop", stepId: "b" }), "AC");
  assert.equal(titles({ do: "title", stepId: "b", title: "X" }), "AXC");
  assert.equal(titles({ do: "add", title: "X" }), "ABCX");
  assert.equal(titles({ do: "drop", stepId: "gone" }), undefined);
  assert.equal(arranged(steps.slice(0, 1), { do: "drop", stepId: "a" }), undefined, "a plan has a step");
});
