/**
 * What changed between two states, as small messages for the chat's webview. Pure.
 * Not here: sending them (`views/chat.ts`), drawing them (`webview/`).
 */
import { difference } from "./diff";
import { attemptsOf, type Block, type FileState, type Picture, type Plan, type Run, type State, type Todo, type Usage, withChanges, working } from "./state";

/** What is told of a run besides its blocks. `attempt` is the number of an attempt, 0 for a run that is none. */
export interface RunHead {
  readonly run: string;
  readonly task: string;
  readonly attempt: number;
  /** The user has begun it: they can go back to before it, and ask for it again. */
  readonly own: boolean;
  readonly status: string;
  readonly activity: string;
  /** It asks, and goes on with the answer. */
  readonly waits: boolean;
  readonly applied: boolean;
  readonly inFiles: readonly string[];
  readonly began: number;
  readonly over: number;
  readonly usage: Usage;
  readonly last?: Usage | undefined;
  readonly rewound?: Run["rewound"];
  readonly todos: readonly Todo[];
  /** The attempts that are made for it, by their numbers. */
  readonly attempts: readonly { readonly run: string; readonly number: number; readonly status: string }[];
}

/** A file of the changes that wait. */
export interface ChangedFile {
  readonly path: string;
  readonly state: "new" | "deleted" | "moved" | "changed";
  readonly added: number;
  readonly removed: number;
}

export interface Bar {
  /** Empty: nothing waits. */
  readonly run: string;
  /** What waits is in the files already, by other programs. */
  readonly foreign?: boolean | undefined;
  readonly files: readonly ChangedFile[];
  readonly proof: readonly string[];
  readonly proven?: boolean | undefined;
}

/** What the webview is told. `append` adds to the text of a block; `block` sets one whole. */
export type Patch =
  | { readonly type: "reset" }
  | ({ readonly type: "run" } & RunHead)
  | { readonly type: "sent"; readonly run: string; readonly pictures: readonly Picture[] }
  | { readonly type: "plan"; readonly run: string; readonly plan: Plan }
  | { readonly type: "block"; readonly run: string; readonly index: number; readonly block: Block }
  | { readonly type: "cut"; readonly run: string; readonly length: number }
  | { readonly type: "append"; readonly run: string; readonly index: number; readonly text: string }
  | ({ readonly type: "bar" } & Bar)
  | { readonly type: "queue"; readonly items: readonly { readonly run: string; readonly title: string }[] }
  | { readonly type: "aside"; readonly questions: readonly Asked[] }
  | { readonly type: "busy"; readonly run: string };

/** A question that waits above the input. */
export type Asked = Extract<Block, { kind: "question" }>;

/** What leads from what is shown (`before`) to `after`; `before` undefined: everything. */
export function patches(before: State | undefined, after: State): Patch[] {
  const found: Patch[] = [];
  const [old, now] = [before && shown(before), shown(after)];
  const kept = old !== undefined && old.every((id, index) => now[index] === id);
  if (!kept) found.push({ type: "reset" });
  for (const id of now) {
    const run = after.runs[id];
    const was = kept && old.includes(id) ? before?.runs[id] : undefined;
    const pictures = after.pictures[id];
    if (run && pictures && (!was || before?.pictures[id] !== pictures)) found.push({ type: "sent", run: id, pictures });
    if (run) found.push(...ofRun(was && before && { run: was, head: headOf(was, before) }, run, headOf(run, after)));
  }
  const [waiting, waited] = [withChanges(after), before && withChanges(before)];
  if (!before || waiting?.staged !== waited?.staged || waiting?.runId !== waited?.runId || waiting?.proof !== waited?.proof) {
    found.push({ type: "bar", ...barOf(waiting) });
  }
  if (before ? before.queued !== after.queued : Object.keys(after.queued).length > 0) {
    found.push({ type: "queue", items: Object.entries(after.queued).map(([run, title]) => ({ run, title })) });
  }
  const [open, was] = [asked(after), before ? asked(before) : []];
  if (open.length !== was.length || open.some(({ requestId }, index) => requestId !== was[index]?.requestId)) found.push({ type: "aside", questions: open });
  const busy = working(after)?.runId ?? "";
  if (!before || busy !== (working(before)?.runId ?? "")) found.push({ type: "busy", run: busy });
  return found;
}

/** The open questions, but for the one that the bar of the changes asks with its buttons. */
function asked(state: State): readonly Asked[] {
  const bar = withChanges(state)?.runId;
  const open = state.questions.filter(({ runId, aboutChanges, choices }) => !(aboutChanges && choices.length === 3 && runId === bar));
  return open.map((question) => {
    const known = state.runs[question.runId]?.blocks.find((block) => block.kind === "question" && block.requestId === question.requestId);
    return (known as Asked | undefined) ?? { kind: "question", ...question, byAgent: false, open: true };
  });
}

/** The runs of the transcript: of attempts only the one that the user chose. */
function shown(state: State): readonly string[] {
  return state.order.filter((id) => state.runs[id]?.attemptOf === undefined || id === state.shown);
}

function* ofRun(known: { run: Run; head: RunHead } | undefined, run: Run, head: RunHead): Generator<Patch> {
  const before = known?.run;
  if (!known || differ(known.head, head)) yield { type: "run", ...head };
  if (before === run) return;
  if (before && run.blocks.length < before.blocks.length) yield { type: "cut", run: run.runId, length: run.blocks.length };
  for (let index = 0; index < run.blocks.length; index++) {
    const block = run.blocks[index] as Block;
    const old = before?.blocks[index];
    if (old !== block) yield blockPatch(run.runId, index, old, block);
  }
  if (run.plan && run.plan !== before?.plan) yield { type: "plan", run: run.runId, plan: run.plan };
}

function differ(one: RunHead, other: RunHead): boolean {
  const { attempts, ...rest } = one;
  const fields = Object.keys(rest) as (keyof typeof rest)[];
  return fields.some((key) => one[key] !== other[key]) || JSON.stringify(attempts) !== JSON.stringify(other.attempts);
}

function headOf(run: Run, state: State): RunHead {
  const attempts = run.attempt ? [] : attemptsOf(state, run.runId).map(({ runId: id, attempt: number, status: at }) => ({ run: id, number: number ?? 0, status: at }));
  const waits = state.questions.some((asked) => asked.runId === run.runId);
  const { runId, title, task, attempt, beside, foreign, earlier, status, activity, applied, inFiles, began, over, usage, last, rewound, todos } = run;
  return {
    run: runId, task: task ?? title, attempt: attempt ?? 0, own: !beside && !foreign && !earlier, status, activity, waits, applied, inFiles, began: began ?? 0, over: over ?? 0, usage, last, rewound, todos, attempts,
  };
}

function blockPatch(run: string, index: number, old: Block | undefined, block: Block): Patch {
  if (old && (block.kind === "text" || block.kind === "output" || block.kind === "thought") && old.kind === block.kind && block.text.startsWith(old.text)) {
    return { type: "append", run, index, text: block.text.slice(old.text.length) };
  }
  return { type: "block", run, index, block };
}

const counted = new WeakMap<FileState, { added: number; removed: number }>();

/** The changes of a run that wait for a decision. */
export function barOf(run: Run | undefined): Bar {
  if (!run) return { run: "", files: [], proof: [] };
  const files = Object.values(run.staged).map((file) => {
    let count = counted.get(file);
    if (!count) counted.set(file, (count = difference(file.base, file.text, 0)));
    const state = file.text === null ? "deleted" : file.base === null ? "new" : file.movedFrom ? "moved" : "changed";
    return { path: file.path, state, added: count.added, removed: count.removed } as const;
  });
  return { run: run.runId, foreign: run.foreign, files, proof: run.proof, proven: run.proven };
}
