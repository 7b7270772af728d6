/**
 * What an event does to the run that it is about: its blocks, its plan, its files, how it stands. Pure.
 * Not here: what it does to all else (`state.ts`), the cards of tools (`calls.ts`).
 */
import { cardOf, editing, lastLine, todosAfter, withChange, withOutput, withResult } from "./calls";
import type { StepChange } from "./chat";
import type { Block, FileState, Plan, Run, RunStatus, Step, StepState, ToolCard, Usage } from "./model";
import type { ChangesApplied, ChangesProposed, ServerEvent } from "./protocol";

const MOST_DETAIL = 4000;

/** A run of which nothing is known. */
export function newRun(runId: string, sessionId: string): Run {
  return {
    runId,
    sessionId,
    title: "",
    mode: "direct",
    status: "running",
    activity: "",
    blocks: [],
    staged: {},
    todos: [],
    proof: [],
    usage: { prompt: 0, cached: 0, completion: 0 },
    applied: false,
    inFiles: [],
  };
}

/** What an event does to its run; undefined when it is not known. */
export function change(run: Run, event: ServerEvent): Run | undefined {
  return ofRun(run, event) ?? ofPlan(run, event) ?? ofTools(run, event) ?? ofDecisions(run, event);
}

function ofRun(run: Run, event: ServerEvent): Run | undefined {
  switch (event.type) {
    case "response_start":
      return { ...run, mode: event.mode, status: "running", ...(event.attempt_of && { attemptOf: event.attempt_of, attempt: event.attempt }), ...(event.beside && { beside: true, title: event.beside }), ...(event.foreign && { foreign: true }) };
    case "response_end":
    case "intent_classified":
    case "session_rewound":
    case "session_restored":
      return run;
    case "run_completed":
      return ended(run, event.status, event.summary, event.error, event.outcome);
    case "status":
      return { ...run, activity: event.message };
    case "error":
      return say(run, { kind: "error", text: event.error, code: event.code });
    case "token":
      return stream(run, "text", event.content);
    case "thought":
      return stream(run, "thought", event.content);
    case "usage": {
      const { prompt, cached, completion, cost } = run.usage;
      return {
        ...run,
        last: { prompt: event.prompt_tokens, cached: event.cached_tokens, completion: event.completion_tokens, context: event.context as Usage["context"] },
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
      return card({ ...run, todos: todosAfter(run.todos, event), activity: "" }, (block) => isCall(block, event.call_id, event.tool), (known) => withResult(known, event));
    case "step_output": {
      const line = lastLine(event.content);
      // Of several calls, the first that has no result is at work: only calls that print nothing run beside each other.
      const atWork = run.blocks.find((block) => block.kind === "tool" && block.state === "running");
      const shown = card(run, (block) => block === atWork, (known) => withOutput(known, event.content));
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
          detail: event.detail.slice(0, MOST_DETAIL),
          choices: event.choices,
          approval: event.type === "approval_requested",
          aboutChanges: isAboutChanges(event, run),
          byAgent: event.type === "question_asked" && event.by_agent,
          multiple: event.type === "question_asked" && event.multiple === true,
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
      return filed(run, event.path, event.change);
    case "changes_proposed": {
      const { files_changed: files, added, removed } = event;
      const changes = { kind: "changes", files, added, removed, ...(run.foreign && { foreign: true }), ...proofOf(event) } as const;
      return say({ ...run, proposal: event.summary, proof: changes.proof ?? [], proven: proven(event) }, changes);
    }
    case "changes_applied": {
      const { outcome, conflicts, undo, verdict } = event;
      // Of what was not confirmed the names count, not that the editor has given no answer.
      const isUnknown = outcome === "unknown";
      const files = isUnknown ? (event.unconfirmed ?? event.files_changed) : event.files_changed;
      const reason = isUnknown && files.length > 0 ? undefined : event.reason;
      return say({ ...run, ...standing(run, event) }, { kind: "applied", files, outcome, conflicts, undo, reason, verdict });
    }
    case "steer_delivered":
      return delivered(run, event.item_id, event.text);
    case "changes_discarded":
      return say(run, { kind: "discarded", files: event.files_changed, ...(event.partly && { partly: true }) });
  }
  return undefined;
}

/** Whether something of the run can be undone, and in which files. Which ones the steps of a plan changed is not told. */
function standing(run: Run, { outcome, undo, steps = [], refused = [], only, verdict, files_changed: changed }: ChangesApplied): Pick<Run, "applied" | "inFiles"> {
  const { applied, inFiles } = run;
  if ((outcome !== "full" && outcome !== "partial") || verdict === "kept") return { applied, inFiles };
  if (!undo) return { applied: true, inFiles: [...inFiles, ...changed.filter((path) => !inFiles.includes(path))] };
  if (steps.length > 0) return { applied, inFiles };
  const left = inFiles.filter((path) => refused.includes(path) || (only !== undefined && !only.includes(path)));
  return { applied: only === undefined ? applied && refused.length > 0 : left.length > 0, inFiles: left };
}

/** What the user said has reached the model: shown where it does. */
function delivered(run: Run, itemId: string, text: string): Run {
  const blocks = run.blocks.filter((block) => block.kind !== "said" || block.itemId !== itemId);
  return say({ ...run, blocks }, { kind: "said", text, itemId, pending: false });
}

/** Whether the tests that ran on the changes are green; undefined where none ran. */
function proven({ proof }: ChangesProposed): boolean | undefined {
  const tests = proof?.["tests"] as { readonly passed?: number; readonly failed?: number; readonly outdated?: boolean } | undefined;
  if (!tests || tests.outdated || (tests.passed ?? 0) + (tests.failed ?? 0) === 0) return undefined;
  return (tests.failed ?? 0) === 0;
}

/** With a file's change, on the card of the call that makes it. */
function filed(run: Run, path: string, given: Readonly<Record<string, unknown>> | undefined): Run {
  const next = { ...run, staged: staged(run.staged, path, given) };
  const [now, at] = [next.staged[path], given === undefined ? -1 : editing(run, path)];
  const block = run.blocks[at];
  if (!now || block?.kind !== "tool") return next;
  return { ...next, blocks: run.blocks.with(at, withChange(block, run.staged[path], now)) };
}

/** What was tried on the changes, in the user's words. */
function proofOf({ proof }: ChangesProposed): { readonly proof?: readonly string[] } {
  const words = proof?.["words"];
  return Array.isArray(words) && words.length > 0 ? { proof: words.map(String) } : {};
}

/** With its end. */
export function ended(run: Run, status: RunStatus, summary: string, error?: string, outcome?: string): Run {
  const last = run.blocks.findLast((block) => block.kind === "text");
  const said = last?.text.trim() === summary.trim();
  const told = run.blocks.find((block) => block.kind === "error" && block.text === error); // its end says it
  const code = told?.kind === "error" ? told.code : undefined;
  return say(
    { ...run, blocks: run.blocks.filter((block) => block !== told), status, error, outcome, activity: "" },
    { kind: "ended", status, summary: said ? "" : summary.trim(), error, code },
  );
}

/** Its open questions cannot be answered any more. */
export function closed(run: Run): Run {
  const blocks = run.blocks.map((block) => (block.kind === "question" && block.open ? { ...block, open: false } : block));
  return { ...run, blocks };
}

/** Whether a question is the one about the changes of its run. */
export function isAboutChanges(event: ServerEvent, { proposal }: Run): boolean {
  return event.type === "approval_requested" && proposal !== undefined && event.title.endsWith(proposal);
}

/** With one more block. */
export function say(run: Run, block: Block): Run {
  return { ...run, blocks: [...run.blocks, block] };
}

function stream(run: Run, kind: "text" | "output" | "thought", content: string): Run {
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

/** The newest card for which `matches` holds, changed. */
function card(run: Run, matches: (card: ToolCard) => boolean, changed: (card: ToolCard) => ToolCard): Run {
  const at = run.blocks.findLastIndex((block) => block.kind === "tool" && matches(block));
  const known = run.blocks[at];
  return known?.kind === "tool" ? { ...run, blocks: run.blocks.with(at, changed(known)) } : run;
}

function called(run: Run, call: Readonly<Record<string, unknown>>): Run {
  const made = cardOf(call);
  return say({ ...run, activity: `${made.name} ${made.subject}`.trim() }, made);
}

function isCall(card: ToolCard, callId: string | undefined, tool: string): boolean {
  if (card.state !== "running") return false;
  return callId === undefined ? card.name === tool : card.callId === callId;
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

/** The steps as a change of the user has them; nothing where it cannot be made (any more). */
export function arranged(steps: readonly Step[], change: StepChange): readonly Partial<Step>[] | undefined {
  const wanted: Partial<Step>[] = steps.map(({ stepId, title, description }) => ({ stepId, title, description }));
  if (change.do === "add") return [...wanted, { title: change.title }];
  const at = wanted.findIndex(({ stepId }) => stepId === change.stepId);
  const [step] = wanted.splice(at, at < 0 ? 0 : 1);
  if (!step || (change.do === "drop" && wanted.length === 0)) return undefined;
  if (change.do === "title") wanted.splice(at, 0, { ...step, title: change.title });
  else if (change.do !== "drop") wanted.splice(Math.max(0, at + (change.do === "up" ? -1 : 1)), 0, step);
  return wanted;
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
