/**
 * Changes that still waited when the window was closed: the server knows them, and makes them known here again.
 * Not here: deciding on them.
 */
import * as vscode from "vscode";
import type { Agent } from "../agent";
import type { FileState } from "../state";
import type { Store } from "../store";
import { pathOf } from "./paths";
import { hunksByFile, sidesOf } from "./hunks";

interface Waiting {
  readonly kind: string;
  readonly runId: string;
  readonly title: string;
  readonly files?: readonly string[];
}

/** Asks the server what waits, and tells the store of the changes it does not know. */
export async function restore(agent: Agent, store: Store): Promise<void> {
  const waiting = (await agent.call<Waiting[]>("codeagent.pending")) ?? [];
  store.dispatch({ type: "local_undecided", runs: waiting.filter(({ kind }) => kind === "changes").map(({ runId }) => runId) });
  for (const { kind, runId, title, files = [] } of waiting) {
    if (kind !== "changes" || Object.keys(store.state.runs[runId]?.staged ?? {}).length > 0) continue;
    const diff = (await agent.call<{ diff: string }>("codeagent.review", { runId }))?.diff ?? "";
    const states = await Promise.all(files.map((file) => stateOf(file, files, diff)));
    const hunks = [...hunksByFile(diff).values()].flat();
    const count = (key: "added" | "removed"): number => hunks.reduce((sum, hunk) => sum + hunk[key], 0);
    const known = { run_id: runId, session_id: store.state.sessionId ?? "", title, files: states };
    store.dispatch({ type: "local_restored", ...known, added: count("added"), removed: count("removed") });
  }
}

async function stateOf(path: string, all: readonly string[], diff: string): Promise<FileState> {
  const now = await textOf(path);
  const name = diff.split("\n").flatMap(namesIn).find((item) => pathOf(item, all) === path);
  const sides = name === undefined ? undefined : sidesOf(diff, name, now);
  return { path, ...(sides ?? { base: now, text: now }) };
}

function namesIn(line: string): string[] {
  return /^(?:---|\+\+\+) /.test(line) ? [line.slice(4).replace(/\t.*$/, "").replace(/^[ab]\//, "")] : [];
}

async function textOf(path: string): Promise<string> {
  try {
    return (await vscode.workspace.openTextDocument(vscode.Uri.file(path))).getText();
  } catch {
    return ""; // not there (yet), or no text
  }
}
