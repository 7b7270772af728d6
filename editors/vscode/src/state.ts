/**
 * What is known of all runs, as a value: events in, a new state out. Pure, so that it replays recorded transcripts.
 * Not here: receiving events (`store.ts`), drawing (`views/`).
 */
import type { ChangesProposed, ServerEvent } from "./protocol";

export type RunStatus = "running" | "completed" | "failed" | "cancelled" | "stopped" | "rejected" | "waiting" | "lost";
export type StepState = "pending" | "running" | "completed" | "failed" | "skipped" | "cancelled";

/** A staged change of one file; `base` is null for a file to be created, `text` for one to be deleted. */
export interface FileState {
  readonly path: string;
  readonly base: string | null;
  readonly text: string | null;
  readonly movedFrom?: string | undefined;
}

export interface Step {
  readonly stepId: string;
  readonly title: string;
  readonly description: string;
  readonly state: StepState;
  readonly error?: string | undefined;
}

export interface Plan {
  readonly goal: string;
  readonly state: "proposed" | "approved" | "rejected" | "running" | "completed" | "failed" | "cancelled";
  readonly steps: readonly Step[];
}

/** One piece of a transcript. */
export type Block =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "output"; readonly text: string }
  | {
      readonly kind: "tool";
      readonly callId: string;
      readonly name: string;
      readonly subject: string;
      readonly state: "running" | "done" | "failed";
      readonly output: string;
      readonly error?: string | undefined;
    }
  | { readonly kind: "note" | "error" | "command"; readonly text: string }
  | { readonly kind: "compacted"; readonly before: number; readonly after: number }
  | { readonly kind: "plan" }
  | { readonly kind: "step"; readonly stepId: string; readonly text: string }
  | { readonly kind: "exit"; readonly exitCode: number; readonly duration: number }
  | {
      readonly kind: "question";
      readonly requestId: string;
      readonly title: string;
      readonly choices: readonly string[];
      readonly approval: boolean;
      readonly open: boolean;
      readonly answer?: string | undefined;
    }
  | { readonly kind: "changes"; readonly files: readonly string[]; readonly added: number; readonly removed: number; readonly proof?: readonly string[] }
  | {
      readonly kind: "applied";
      readonly files: readonly string[];
      readonly outcome: string;
      readonly conflicts: readonly string[];
      readonly undo: boolean;
      readonly reason?: string | undefined;
    }
  /** What the user said to the run while it worked, once the model has it. */
  | { readonly kind: "said"; readonly text: string }
  | { readonly kind: "discarded"; readonly files: readonly string[] }
  | { readonly kind: "ended"; readonly status: RunStatus; readonly summary: string; readonly error?: string | undefined };

export interface Run {
  readonly runId: string;
  readonly sessionId: string;
  readonly title: string;
  /** The run for which it is one of several attempts. */
  readonly attemptOf?: string | undefined;
  /** Which of them it is, from 1. */
  readonly attempt?: number | undefined;
  readonly mode: "direct" | "plan";
  readonly status: RunStatus;
  /** What it does now, in a few words. */
  readonly activity: string;
  readonly blocks: readonly Block[];
  /** Changes that wait for a decision, by path. */
  readonly staged: Readonly<Record<string, FileState>>;
  readonly plan?: Plan | undefined;
  /** Tokens; `cost` in US dollars, absent where no price is known. */
  readonly usage: { readonly prompt: number; readonly cached: number; readonly completion: number; readonly cost?: number };
  readonly outcome?: string | undefined;
  readonly error?: string | undefined;
  /** The title of the question about its changes. */
  readonly proposal?: string | undefined;
  /** Whether something of it is in the files and can be undone. */
  readonly applied: boolean;
}

export interface Question {
  readonly requestId: string;
  readonly runId: string;
  readonly title: string;
  readonly detail: string;
  readonly choices: readonly string[];
  readonly approval: boolean;
  /** It asks about the changes of its run. */
  readonly aboutChanges: boolean;
}

export interface State {
  readonly runs: Readonly<Record<string, Run>>;
  /** Run ids, oldest first. */
  readonly order: readonly string[];
  /** The open ones, oldest first. */
  readonly questions: readonly Question[];
  /** The session in which the user works; attempts and runs of earlier sessions may be at work in others. */
  readonly sessionId?: string | undefined;
  /** Titles of runs that have not begun. */
  readonly queued: Readonly<Record<string, string>>;
  /** The run that the user chose in the tree: an attempt is in the transcript only then. */
  readonly shown?: string | undefined;
}

/** What this editor knows of itself: what the user asked for, a restored change, the end of the server. */
export type LocalEvent =
  | { readonly type: "local_request"; readonly run_id: string; readonly session_id: string; readonly title: string }
  | { readonly type: "local_queued"; readonly run_id: string; readonly session_id: string; readonly title: string }
  | { readonly type: "local_shown"; readonly run_id: string }
  | { readonly type: "local_gone" }
  | { readonly type: "local_session"; readonly session_id: string }
  | { readonly type: "local_restored"; readonly run_id: string; readonly session_id: string; readonly title: string; readonly files: readonly FileState[]; readonly added: number; readonly removed: number }
  | { readonly type: "local_clear" };

export type AnyEvent = ServerEvent | LocalEvent;

/** What a user sees of everything in one word. */
export type Condition = "waiting" | "working" | "error" | "idle";

export const INITIAL: State = { runs: {}, order: [], questions: [], queued: {} };

/** The state after `event`. Events that are not known change nothing. */
export function reduce(state: State, event: AnyEvent): State {
  switch (event.type) {
    case "local_gone":
      return gone(state);
    case "local_session":
      return { ...state, sessionId: event.session_id };
    case "local_restored":
      return restored(state, event);
    case "local_queued":
      return { ...state, sessionId: event.session_id, queued: { ...state.queued, [event.run_id]: event.title } };
    case "local_shown":
      return { ...state, shown: event.run_id };
    case "local_clear":
      return cleared(state);
  }
  if (!event.run_id) return state;
  const known = withWhole(state, event);
  const before = known.runs[event.run_id] ?? begun(state, event.run_id, event.session_id);
  if (event.type === "local_request") {
    return { ...withRun(known, { ...before, title: event.title }), sessionId: event.session_id };
  }
  const after = change(before, event);
  if (after === undefined) return state;
  return { ...withRun(known, after), questions: questions(state.questions, event, after) };
}

/** A run of an earlier window of which changes still wait. */
function restored(state: State, event: Extract<LocalEvent, { type: "local_restored" }>): State {
  const { run_id: runId, session_id: sessionId, title, files, added, removed } = event;
  const staged = Object.fromEntries(files.map((file) => [file.path, file]));
  const changes: Block = { kind: "changes", files: files.map((file) => file.path), added, removed };
  const run: Run = { ...newRun(runId, sessionId), title, status: "stopped", staged, blocks: [changes] };
  return { ...withRun(state, run), sessionId: state.sessionId ?? (sessionId || undefined) };
}

/** In one word how things stand. */
export function condition(state: State): Condition {
  if (state.questions.length > 0) return "waiting";
  if (working(state)) return "working";
  const last = newest(state);
  return last && (last.status === "failed" || last.status === "lost") ? "error" : "idle";
}

/** The newest run; here and below, attempts are parts of their run and none of their own. */
export function newest(state: State): Run | undefined {
  return lastWhere(state, () => true);
}

/** The newest run that is at work. */
export function working(state: State): Run | undefined {
  return lastWhere(state, (run) => run.status === "running");
}

/** The newest run whose changes wait for a decision. */
export function withChanges(state: State): Run | undefined {
  return lastWhere(state, (run) => Object.keys(run.staged).length > 0);
}

/** The newest run of which something can be undone. */
export function undoable(state: State): Run | undefined {
  return lastWhere(state, (run) => run.applied);
}

/** The attempts that are made for a run, by their numbers. */
export function attemptsOf(state: State, runId: string): readonly Run[] {
  const found = state.order.flatMap((id) => (state.runs[id]?.attemptOf === runId ? [state.runs[id]] : []));
  return found.sort((one, other) => (one.attempt ?? 0) - (other.attempt ?? 0));
}

/** Where a plan stands: number of the step at work or next (from 1), of all, and its title. */
export function position(plan: Plan): { number: number; of: number; title: string } | undefined {
  const running = plan.steps.findIndex((step) => step.state === "running");
  const index = running >= 0 ? running : plan.steps.findIndex((step) => step.state === "pending");
  const step = plan.steps[index];
  return step && { number: index + 1, of: plan.steps.length, title: step.title };
}

/** What a run has cost so far, for people; empty where no price is known. */
export function dollars(run: Run | undefined): string {
  const cost = run?.usage.cost ?? 0;
  if (cost < 0.0001) return "";
  return cost >= 0.1 ? `$${cost.toFixed(2)}` : `$${Number(cost.toPrecision(2))}`;
}

/** The share of a run's prompts that came from a cache, in whole percent; 0 where nothing is told of one. */
export function cachedPercent(run: Run | undefined): number {
  const { prompt = 0, cached = 0 } = run?.usage ?? {};
  return prompt > 0 && cached > 0 ? Math.floor((100 * Math.min(cached, prompt)) / prompt) : 0;
}

function lastWhere(state: State, holds: (run: Run) => boolean): Run | undefined {
  for (let index = state.order.length - 1; index >= 0; index--) {
    const run = state.runs[state.order[index] ?? ""];
    if (run && run.attemptOf === undefined && holds(run)) return run;
  }
  return undefined;
}

/** What is left of an earlier session: what is at work, or asks something, with all its attempts. */
function cleared(state: State): State {
  const { runs, questions: open, sessionId, queued } = state;
  const stays = (id: string): boolean => runs[id]?.status === "running" || open.some(({ runId }) => runId === id);
  const kept = Object.values(runs).filter((run) => stays(run.attemptOf ?? run.runId));
  const ids = new Set(kept.map(({ runId }) => runId));
  return {
    runs: Object.fromEntries(kept.map((run) => [run.runId, run])),
    order: state.order.filter((id) => ids.has(id)),
    questions: open,
    sessionId,
    queued,
  };
}

/** With the run for which an attempt begins: it may have waited in the queue, and says nothing itself until its end. */
function withWhole(state: State, event: AnyEvent): State {
  const whole = event.type === "response_start" ? event.attempt_of : undefined;
  return !whole || state.runs[whole] ? state : withRun(state, begun(state, whole, ""));
}

function withRun(state: State, run: Run): State {
  const order = state.runs[run.runId] ? state.order : [...state.order, run.runId];
  return { ...state, runs: { ...state.runs, [run.runId]: run }, order };
}

/** A run of which nothing was known but the title that it has in the queue. */
function begun(state: State, runId: string, sessionId: string): Run {
  return { ...newRun(runId, sessionId), title: state.queued[runId] ?? "" };
}

function newRun(runId: string, sessionId: string): Run {
  return {
    runId,
    sessionId,
    title: "",
    mode: "direct",
    status: "running",
    activity: "",
    blocks: [],
    staged: {},
    usage: { prompt: 0, cached: 0, completion: 0 },
    applied: false,
  };
}

/** What an event does to its run; undefined when it is not known. */
function change(run: Run, event: ServerEvent): Run | undefined {
  return ofRun(run, event) ?? ofPlan(run, event) ?? ofTools(run, event) ?? ofDecisions(run, event);
}

function ofRun(run: Run, event: ServerEvent): Run | undefined {
  switch (event.type) {
    case "response_start":
      return { ...run, mode: event.mode, status: "running", ...(event.attempt_of && { attemptOf: event.attempt_of, attempt: event.attempt }) };
    case "response_end":
    case "intent_classified":
      return run;
    case "run_completed":
      return ended(run, event.status, event.summary, event.error, event.outcome);
    case "status":
      return { ...run, activity: event.message };
    case "error":
      return say(run, { kind: "error", text: event.error });
    case "token":
      return stream(run, "text", event.content);
    case "usage": {
      const { prompt, cached, completion, cost } = run.usage;
      return {
        ...run,
        usage: {
          prompt: prompt + event.prompt_tokens,
          cached: cached + event.cached_tokens,
          completion: completion + event.completion_tokens,
          ...((cost ?? event.cost) !== undefined && { cost: (cost ?? 0) + (event.cost ?? 0) }),
        },
      };
    }
    case "anomaly_detected":
      return say(run, { kind: "note", text: event.detail || event.kind });
    case "context_compacted":
      return say(run, { kind: "compacted", before: event.before, after: event.after });
  }
  return undefined;
}

function ofPlan(run: Run, event: ServerEvent): Run | undefined {
  switch (event.type) {
    case "plan_created":
      return say(
        { ...run, plan: { goal: event.goal, state: "proposed", steps: event.steps.map(toStep) } },
        { kind: "plan" },
      );
    case "plan_modified":
      return run.plan && event.steps.length > 0
        ? { ...run, plan: { ...run.plan, steps: event.steps.map(toStep) } }
        : run;
    case "plan_approved":
      return planState(run, "approved");
    case "plan_rejected":
      return planState(run, "rejected");
    case "plan_completed":
    case "execution_completed":
      return planState(run, "completed");
    case "execution_started":
      return planState(run, "running");
    case "execution_failed":
      return planState(run, "failed");
    case "execution_cancelled":
      return planState(run, "cancelled");
    case "awaiting_approval":
      return { ...run, activity: event.message };
    case "replan_warning":
      return say(run, { kind: "note", text: event.reason });
    case "step_started": {
      const started = step({ ...run, activity: event.description }, event.step_id, { state: "running" });
      return say(started, { kind: "step", stepId: event.step_id, text: event.description });
    }
    case "step_completed":
      return step(run, event.step_id, { state: "completed" });
    case "step_error":
      return step(run, event.step_id, { state: "failed", error: event.error });
  }
  return undefined;
}

function ofTools(run: Run, event: ServerEvent): Run | undefined {
  switch (event.type) {
    case "tool_calls":
      return event.calls.reduce<Run>((so_far, call) => called(so_far, call), run);
    case "tool_result":
      return amend({ ...run, activity: "" }, (block) => isCall(block, event.call_id, event.tool), {
        state: event.success ? "done" : "failed",
        ...(event.success ? {} : { error: (event.error ?? event.output).trim() }),
      });
    case "step_output": {
      const line = lastLine(event.content);
      const shown = amend(run, (block) => block.kind === "tool" && block.state === "running", { output: line });
      return line ? { ...shown, activity: line } : shown;
    }
    case "tool_disabled":
      return say(run, { kind: "note", text: `${event.tool}: ${event.reason}` });
    case "tool_enabled":
      return run;
    case "started":
      return say({ ...run, activity: event.command }, { kind: "command", text: event.command });
    case "stdout":
    case "stderr":
      return stream(run, "output", event.content.replaceAll("\r", "\n"));
    case "exit":
      return say(run, { kind: "exit", exitCode: event.exit_code, duration: event.duration });
  }
  return undefined;
}

function ofDecisions(run: Run, event: ServerEvent): Run | undefined {
  switch (event.type) {
    case "approval_requested":
    case "question_asked":
      return say(
        { ...run, activity: event.title },
        {
          kind: "question",
          requestId: event.request_id,
          title: event.title,
          choices: event.choices,
          approval: event.type === "approval_requested",
          open: true,
        },
      );
    case "approval_resolved":
    case "question_answered":
      return amend(
        { ...run, activity: "" },
        (block) => block.kind === "question" && block.requestId === event.request_id,
        { open: false, answer: event.answer },
      );
    case "file_change":
      return { ...run, staged: staged(run.staged, event.path, event.change) };
    case "changes_proposed": {
      const { files_changed: files, added, removed } = event;
      const changes: Block = { kind: "changes", files, added, removed, ...proofOf(event) };
      return say({ ...run, proposal: event.summary }, changes);
    }
    case "changes_applied": {
      const { files_changed: files, outcome, conflicts, undo, reason } = event;
      const came = outcome === "full" || outcome === "partial";
      const applied = undo ? run.applied && !(came && (event.steps?.length ?? 0) === 0 && !event.refused?.length) : run.applied || came;
      return say({ ...run, applied }, { kind: "applied", files, outcome, conflicts, undo, reason });
    }
    case "steer_delivered":
      return say(run, { kind: "said", text: event.text });
    case "changes_discarded":
      return say(run, { kind: "discarded", files: event.files_changed });
  }
  return undefined;
}

/** What was tried on the changes, in the user's words. */
function proofOf({ proof }: ChangesProposed): { readonly proof?: readonly string[] } {
  const words = proof?.["words"];
  return Array.isArray(words) && words.length > 0 ? { proof: words.map(String) } : {};
}

function ended(run: Run, status: RunStatus, summary: string, error?: string, outcome?: string): Run {
  const last = run.blocks.findLast((block) => block.kind === "text");
  const said = last?.text.trim() === summary.trim();
  const blocks = run.blocks.filter((block) => block.kind !== "error" || block.text !== error); // its end says it
  return say(
    { ...run, blocks, status, error, outcome, activity: "" },
    { kind: "ended", status, summary: said ? "" : summary.trim(), error },
  );
}

function gone(state: State): State {
  const runs = Object.fromEntries(
    Object.entries(state.runs).map(([id, run]) => [id, run.status === "running" ? ended(closed(run), "lost", "") : run]),
  );
  return { ...state, runs, questions: [] };
}

/** Its open questions cannot be answered any more. */
function closed(run: Run): Run {
  const blocks = run.blocks.map((block) => (block.kind === "question" && block.open ? { ...block, open: false } : block));
  return { ...run, blocks };
}

function questions(open: readonly Question[], event: ServerEvent, run: Run): readonly Question[] {
  switch (event.type) {
    case "approval_requested":
    case "question_asked": {
      const approval = event.type === "approval_requested";
      const { request_id: requestId, run_id: runId, title, detail, choices } = event;
      const aboutChanges = approval && run.proposal !== undefined && title.endsWith(run.proposal);
      return [...open, { requestId, runId, title, detail, choices, approval, aboutChanges }];
    }
    case "approval_resolved":
    case "question_answered":
      return open.filter((item) => item.requestId !== event.request_id);
    case "run_completed":
      return open.filter((item) => item.runId !== event.run_id);
  }
  return open;
}

function say(run: Run, block: Block): Run {
  return { ...run, blocks: [...run.blocks, block] };
}

function stream(run: Run, kind: "text" | "output", content: string): Run {
  const last = run.blocks.at(-1);
  if (last?.kind !== kind) return say(run, { kind, text: content });
  return { ...run, blocks: [...run.blocks.slice(0, -1), { kind, text: last.text + content }] };
}

/** The newest block for which `matches` holds, changed. */
function amend(run: Run, matches: (block: Block) => boolean, changes: object): Run {
  const index = run.blocks.findLastIndex(matches);
  if (index < 0) return run;
  const blocks = [...run.blocks];
  blocks[index] = { ...blocks[index], ...changes } as Block;
  return { ...run, blocks };
}

function called(run: Run, call: Readonly<Record<string, unknown>>): Run {
  const name = String(call["name"] ?? "");
  const about = subject(call["arguments"]);
  return say(
    { ...run, activity: `${name} ${about}`.trim() },
    { kind: "tool", callId: String(call["id"] ?? ""), name, subject: about, state: "running", output: "" },
  );
}

function isCall(block: Block, callId: string | undefined, tool: string): boolean {
  if (block.kind !== "tool" || block.state !== "running") return false;
  return callId === undefined ? block.name === tool : block.callId === callId;
}

const SUBJECTS = ["path", "file", "query", "pattern", "question", "command"];

function subject(given: unknown): string {
  if (typeof given !== "object" || given === null) return "";
  for (const key of SUBJECTS) {
    const value = (given as Record<string, unknown>)[key];
    if (typeof value === "string" && value !== "") return value.replace(/\s+/g, " ");
  }
  return "";
}

function lastLine(text: string): string {
  return (text.trim().split(/[\r\n]/).at(-1) ?? "").slice(0, 120);
}

function toStep(data: Readonly<Record<string, unknown>>): Step {
  const word = (key: string): string => String(data[key] ?? "");
  return {
    stepId: word("step_id"),
    title: word("title") || word("description"),
    description: word("description"),
    state: (word("state") || "pending") as StepState,
    error: data["error"] === undefined ? undefined : word("error"),
  };
}

function step(run: Run, stepId: string, changes: Partial<Step>): Run {
  if (!run.plan) return run;
  const steps = run.plan.steps.map((item) => (item.stepId === stepId ? { ...item, ...changes } : item));
  return { ...run, plan: { ...run.plan, steps } };
}

function planState(run: Run, state: Plan["state"]): Run {
  return run.plan ? { ...run, plan: { ...run.plan, state } } : run;
}

function staged(
  known: Readonly<Record<string, FileState>>,
  path: string,
  given: Readonly<Record<string, unknown>> | undefined,
): Readonly<Record<string, FileState>> {
  if (given === undefined) {
    const { [path]: _, ...others } = known;
    return others;
  }
  const text = (key: string): string | null => (typeof given[key] === "string" ? (given[key] as string) : null);
  return { ...known, [path]: { path, base: text("base"), text: text("text"), movedFrom: text("moved_from") ?? undefined } };
}
