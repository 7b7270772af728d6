/**
 * What changed between two states, as small messages for the transcript's webview. Pure.
 * Not here: sending them (`views/transcript.ts`), drawing them (`webview/`).
 */
import { type Block, type Plan, type Run, type State } from "./state";

/**
 * What the webview is told. `append` adds to the text of a block; `block` sets one whole. `attempt` is the number of an
 * attempt, 0 for a run that is none.
 */
export type Patch =
  | { readonly type: "reset" }
  | { readonly type: "run"; readonly run: string; readonly title: string; readonly attempt: number; readonly status: string; readonly activity: string; readonly staged: number }
  | { readonly type: "plan"; readonly run: string; readonly plan: Plan }
  | { readonly type: "block"; readonly run: string; readonly index: number; readonly block: Block }
  | { readonly type: "append"; readonly run: string; readonly index: number; readonly text: string };

/** What leads from what is shown (`before`) to `after`; `before` undefined: everything. */
export function patches(before: State | undefined, after: State): Patch[] {
  const found: Patch[] = [];
  const [old, now] = [before && shown(before), shown(after)];
  const kept = old !== undefined && old.every((id, index) => now[index] === id);
  if (!kept) found.push({ type: "reset" });
  for (const id of now) {
    const run = after.runs[id];
    if (run) found.push(...ofRun(kept && old.includes(id) ? before?.runs[id] : undefined, run));
  }
  return found;
}

/** The runs of the transcript: of attempts only the one that the user chose. */
function shown(state: State): readonly string[] {
  return state.order.filter((id) => state.runs[id]?.attemptOf === undefined || id === state.shown);
}

function* ofRun(before: Run | undefined, run: Run): Generator<Patch> {
  if (before === run) return;
  const staged = Object.keys(run.staged).length;
  if (
    !before ||
    before.title !== run.title ||
    before.status !== run.status ||
    before.activity !== run.activity ||
    Object.keys(before.staged).length !== staged
  ) {
    yield { type: "run", run: run.runId, title: run.title, attempt: run.attempt ?? 0, status: run.status, activity: run.activity, staged };
  }
  for (let index = 0; index < run.blocks.length; index++) {
    const block = run.blocks[index] as Block;
    const old = before?.blocks[index];
    if (old !== block) yield blockPatch(run.runId, index, old, block);
  }
  if (run.plan && run.plan !== before?.plan) yield { type: "plan", run: run.runId, plan: run.plan };
}

function blockPatch(run: string, index: number, old: Block | undefined, block: Block): Patch {
  if (old && (block.kind === "text" || block.kind === "output") && old.kind === block.kind && block.text.startsWith(old.text)) {
    return { type: "append", run, index, text: block.text.slice(old.text.length) };
  }
  return { type: "block", run, index, block };
}
