/**
 * What is known of all runs, as a value: events in, a new state out. Pure, so that it replays recorded transcripts.
 * Not here: what an event does to its own run (`runState.ts`), receiving events (`store.ts`), drawing (`webview/`).
 */
import type { AnyEvent, Block, LocalEvent, Question, Replayed, Run, State } from "./model";
import type { ServerEvent } from "./protocol";
import { change, closed, ended, isAboutChanges, newRun, say } from "./runState";

export * from "./model";
export * from "./select";

export const INITIAL: State = { runs: {}, order: [], questions: [], queued: {}, pictures: {}, gone: {} };

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
    case "local_pictures":
      return { ...state, pictures: { ...state.pictures, [event.run_id]: event.pictures } };
    case "local_shown":
      return { ...state, shown: event.run_id };
    case "local_withdrawn":
      return { ...state, queued: without(state.queued, event.run_id) };
    case "local_undecided":
      return undecided(state, event.runs);
    case "local_replayed":
      return replayed(state, event);
    case "local_clear":
      return cleared(state);
  }
  if (!event.run_id) return aside(state, event);
  const known = withWhole(state, event);
  const before = known.runs[event.run_id] ?? begun(state, event.run_id, event.session_id);
  if (event.type === "local_request") {
    return { ...withRun(known, { ...before, title: event.title, began: before.began ?? event.ts }), sessionId: event.session_id };
  }
  if (event.type === "local_said") {
    return withRun(known, say(before, { kind: "said", text: event.text, itemId: event.item_id, pending: true }));
  }
  const after = change(before, event);
  if (after === undefined) return state;
  const timed = event.ts > 0 ? { ...after, began: after.began ?? event.ts, ...(event.type === "run_completed" && { over: event.ts }) } : after;
  const next = { ...rewound(withRun(known, timed), event), questions: questions(state.questions, event, timed) };
  return { ...next, queued: without(next.queued, event.run_id) };
}

/** With a question that belongs to no run, such as whether another agent may use this editor. */
function aside(state: State, event: AnyEvent): State {
  if (event.type !== "approval_requested" && event.type !== "approval_resolved" && event.type !== "question_asked" && event.type !== "question_answered") return state;
  return { ...state, questions: questions(state.questions, event, newRun("", "")) };
}

/** With what a rewind took back marked, or no longer. */
function rewound(state: State, event: ServerEvent): State {
  const marked = (id: string, what: Run["rewound"]): State["runs"] => (state.runs[id] ? { [id]: { ...state.runs[id], rewound: what } } : {});
  switch (event.type) {
    case "session_rewound":
      return { ...state, runs: Object.assign({}, state.runs, ...event.gone.map((id) => marked(id, event.what))) as State["runs"], gone: { ...state.gone, [event.run_id]: event.gone } };
    case "session_restored":
      return { ...state, runs: Object.assign({}, state.runs, ...(state.gone[event.run_id] ?? []).map((id) => marked(id, undefined))) as State["runs"] };
  }
  return state;
}

function without<T>(all: Readonly<Record<string, T>>, key: string): Readonly<Record<string, T>> {
  if (!(key in all)) return all;
  const { [key]: _, ...others } = all;
  return others;
}

/** With the runs of a session that is shown again, before those that are known already. */
function replayed(state: State, { session_id: sessionId, events }: Extract<LocalEvent, { type: "local_replayed" }>): State {
  const known = new Set(state.order);
  const past = events.filter((event) => !known.has(event.run_id)).reduce(again, INITIAL);
  const runs = Object.fromEntries(Object.entries(past.runs).map(([id, run]) => [id, run.status === "running" ? ended(closed(run), "lost", "") : closed(run)]));
  const here = (id: string): boolean => past.runs[id] === undefined;
  return {
    ...state,
    runs: { ...state.runs, ...runs },
    order: [...past.order, ...state.order.filter(here)],
    gone: { ...past.gone, ...state.gone },
    sessionId,
  };
}

function again(state: State, event: Replayed): State {
  if (event.type !== "run_started") return reduce(state, event);
  const run = state.runs[event.run_id] ?? begun(state, event.run_id, event.session_id);
  return withRun(state, { ...run, title: event.title, task: event.task, began: event.ts, earlier: event.earlier });
}

/** Only these runs have changes that wait: what others had was decided, perhaps in another window. */
function undecided(state: State, ids: readonly string[]): State {
  const runs = Object.entries(state.runs).map(([id, run]) => [id, ids.includes(id) || run.status === "running" ? run : { ...run, staged: {} }]);
  return { ...state, runs: Object.fromEntries(runs) as State["runs"] };
}

/** A run of an earlier window of which changes still wait. */
function restored(state: State, event: Extract<LocalEvent, { type: "local_restored" }>): State {
  const { run_id: runId, session_id: sessionId, title, files, added, removed } = event;
  const known = state.runs[runId];
  const staged = Object.fromEntries(files.map((file) => [file.path, known?.staged[file.path] ?? file]));
  if (known) return withRun(state, { ...known, staged });
  const changes: Block = { kind: "changes", files: files.map((file) => file.path), added, removed };
  const run: Run = { ...newRun(runId, sessionId), title, status: "stopped", staged, blocks: [changes] };
  return { ...withRun(state, run), sessionId: state.sessionId ?? (sessionId || undefined) };
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
    pictures: Object.fromEntries(Object.entries(state.pictures).filter(([id]) => ids.has(id) || id in queued)),
    gone: {},
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

function gone(state: State): State {
  const runs = Object.fromEntries(
    Object.entries(state.runs).map(([id, run]) => [id, run.status === "running" ? ended(closed(run), "lost", "") : run]),
  );
  return { ...state, runs, questions: [] };
}

function questions(open: readonly Question[], event: ServerEvent, run: Run): readonly Question[] {
  switch (event.type) {
    case "approval_requested":
    case "question_asked": {
      const approval = event.type === "approval_requested";
      const { request_id: requestId, run_id: runId, title, detail, choices } = event;
      const aboutChanges = isAboutChanges(event, run);
      const multiple = event.type === "question_asked" && event.multiple === true;
      return [...open, { requestId, runId, title, detail, choices, approval, aboutChanges, multiple }];
    }
    case "approval_resolved":
    case "question_answered":
      return open.filter((item) => item.requestId !== event.request_id);
    case "run_completed":
      return open.filter((item) => item.runId !== event.run_id);
  }
  return open;
}
