/**
 * Runs together: words to a run at work, the list of runs and what can be done with each, the search over them.
 * Not here: starting runs (`commands.ts`), what is asked about changes (`review`).
 */
import * as vscode from "vscode";
import type { Agent } from "./agent";
import { whileOpen } from "./boxes";
import { working } from "./state";
import { now, type Store } from "./store";
import { withCached } from "./views/statusBar";
import { unlinked } from "./words";

/** A run as `codeagent.runs` and `codeagent.session.search` list it. */
interface Row {
  readonly runId: string;
  readonly sessionId: string;
  readonly title: string;
  readonly state: string;
  readonly step?: string;
  readonly modified?: number;
  readonly cost?: number;
  readonly cachedPercent?: number;
  readonly excerpt?: string;
}

interface Choice extends vscode.QuickPickItem {
  readonly run: () => unknown;
}

/** States of runs that have not done anything yet, or not all of it: nobody goes back to before them. */
const UNDONE = ["running", "waiting", "queued", "withdrawn"];

const ICONS: Readonly<Record<string, string>> = {
  running: "sync",
  waiting: "bell-dot",
  queued: "watch",
  completed: "check",
  failed: "error",
};

export class Together {
  constructor(
    private readonly agent: Agent,
    private readonly store: Store,
  ) {}

  /** Says something to a run at work: the given one, the only one, or one that is chosen. */
  async steer(runId?: string, text?: string): Promise<void> {
    const { state } = this.store;
    const working = Object.values(state.runs).filter((run) => run.status === "running" && run.attemptOf === undefined && !run.beside);
    const one = working.length === 1 ? working[0]?.runId : undefined;
    const chosen = runId ?? one ?? (await this.which(working.map(({ runId: id, title }) => ({ id, title }))));
    if (chosen === undefined) {
      if (working.length === 0) void vscode.window.showInformationMessage(vscode.l10n.t("Nothing is at work. Start a task instead."));
      return;
    }
    const title = vscode.l10n.t("Say to the agent");
    const words = text ?? (await whileOpen(vscode.window.showInputBox({ title, ignoreFocusOut: true })));
    if (words?.trim()) await this.agent.call("codeagent.steer", { runId: chosen, text: words });
  }

  /** Says something to the run at work; where it has just ended, the words are the next task. False: nobody heard it. */
  async say(text: string): Promise<boolean> {
    const run = working(this.store.state);
    if (!run) return this.agent.run("codeagent.run", { task: text }, text);
    const answer = await this.agent.call<{ runId: string; sessionId?: string; itemId?: string; queued?: boolean }>("codeagent.steer", { runId: run.runId, text });
    if (!answer) return false;
    const known = { run_id: answer.runId, session_id: answer.sessionId ?? run.sessionId };
    if (answer.itemId) this.store.dispatch({ type: "local_said", ...known, text, item_id: answer.itemId });
    else this.store.dispatch({ type: answer.queued ? "local_queued" : "local_request", ...known, title: text, ts: now() });
    return true;
  }

  /** Goes back to before a run with all it changed and said, as what was asked is asked anew; false when the user declines. */
  async rewindFully(runId: string): Promise<boolean> {
    const told = await this.agent.call<{ files: string[] }>("codeagent.session.rewind", { runId, preview: true });
    if (!told) return false;
    if (told.files.length > 0) {
      const yes = vscode.l10n.t("Go Back and Run Again");
      const detail = told.files.join("\n");
      const chosen = await vscode.window.showWarningMessage(vscode.l10n.t("This takes back what was changed since, in these files:"), { modal: true, detail }, yes);
      if (chosen !== yes) return false;
    }
    const started = await this.agent.call<{ runId: string; sessionId: string }>("codeagent.session.rewind", { runId, what: "both" });
    if (started) this.store.dispatch({ type: "local_request", run_id: started.runId, session_id: started.sessionId, title: vscode.l10n.t("Go back and run again"), ts: now() });
    return started !== undefined;
  }

  /** The user's own commands; choosing one asks for its arguments and begins it. */
  async commands(): Promise<void> {
    interface Known { readonly name: string; readonly description: string; readonly hint: string; readonly path: string }
    const rows = (await this.agent.call<Known[]>("codeagent.commands.list")) ?? [];
    const none = vscode.l10n.t("No commands yet: put a Markdown file into .codeagent/commands.");
    if (rows.length === 0) return void vscode.window.showInformationMessage(none);
    const begin = async (row: Known): Promise<void> => {
      const box = vscode.window.showInputBox({ title: `/${row.name}`, placeHolder: row.hint, ignoreFocusOut: true });
      const given = await whileOpen(box);
      if (given === undefined) return;
      await this.agent.run("codeagent.command", { name: row.name, arguments: given }, `/${row.name} ${given}`.trim());
    };
    await pick(vscode.l10n.t("Commands…"), rows.map((row) => ({ label: `/${row.name}`, description: row.hint, detail: row.description, run: () => begin(row) })));
  }

  /** The runs of the workspace; choosing one offers what can be done with it. */
  async runs(): Promise<void> {
    const rows = (await this.agent.call<Row[]>("codeagent.runs")) ?? [];
    if (rows.length === 0) return void vscode.window.showInformationMessage(vscode.l10n.t("No runs yet."));
    await pick(vscode.l10n.t("Runs…"), rows.map((row) => this.item(row, () => this.offer(row))));
  }

  /** Finds runs by words; choosing one goes on with its session. */
  async search(given?: string): Promise<void> {
    const title = vscode.l10n.t("Search Sessions…");
    const query = given ?? (await whileOpen(vscode.window.showInputBox({ title, ignoreFocusOut: true })));
    if (!query?.trim()) return;
    const rows = (await this.agent.call<Row[]>("codeagent.session.search", { query })) ?? [];
    if (rows.length === 0) return void vscode.window.showInformationMessage(vscode.l10n.t("Nothing found for “{0}”.", unlinked(query)));
    await pick(title, rows.map((row) => this.item(row, () => this.offer(row))));
  }

  /** Goes back to before a run, after showing what that takes back. */
  async rewind(runId?: string): Promise<void> {
    const chosen = runId ?? (await this.ended());
    if (chosen === undefined) return;
    const told = await this.agent.call<{ runs: Row[]; files: string[]; conflicts: string[] }>("codeagent.session.rewind", {
      runId: chosen,
      preview: true,
    });
    if (!told) return;
    const title = vscode.l10n.t("Go back to before “{0}”", told.runs[0]?.title ?? "");
    const back = (what: string) => async (): Promise<void> => {
      const started = await this.agent.call<{ runId: string; sessionId: string }>("codeagent.session.rewind", { runId: chosen, what });
      if (started) this.store.dispatch({ type: "local_request", run_id: started.runId, session_id: started.sessionId, title, ts: now() });
    };
    const runs = told.runs.map((run) => run.title).join("; ");
    const files = told.files.join(", ");
    const stay = told.conflicts.length ? vscode.l10n.t("Changed since and kept: {0}", told.conflicts.join(", ")) : "";
    const changes = told.files.length ? [files, stay].filter(Boolean).join(" · ") : vscode.l10n.t("No files");
    await pick(title, [
      { label: vscode.l10n.t("Changes and talk"), description: runs, detail: changes, run: back("both") },
      { label: vscode.l10n.t("Changes only"), detail: changes, run: back("changes") },
      { label: vscode.l10n.t("Talk only"), description: runs, run: back("talk") },
    ]);
  }

  /** Begins a session with the talk as it was before a run. */
  async fork(runId?: string): Promise<void> {
    const chosen = runId ?? (await this.ended());
    if (chosen !== undefined) await this.agent.enter("codeagent.session.fork", { runId: chosen });
  }

  private async offer(row: Row): Promise<void> {
    const can: Choice[] = [];
    if (row.state === "running" || row.state === "waiting") {
      can.push({ label: vscode.l10n.t("Say Something to It…"), run: () => this.steer(row.runId) });
      can.push({ label: vscode.l10n.t("Stop"), run: () => this.agent.call("codeagent.cancel", { runId: row.runId }) });
    } else if (row.state === "queued") {
      can.push({ label: vscode.l10n.t("Leave It Out"), run: () => this.agent.call("codeagent.withdraw", { itemId: row.runId }) });
    } else {
      can.push({ label: vscode.l10n.t("Go On with Its Session"), run: () => this.resume(row.sessionId) });
    }
    if (!UNDONE.includes(row.state)) {
      can.push({ label: vscode.l10n.t("Go Back to Before It…"), run: () => this.inSession(row, () => this.rewind(row.runId)) });
      can.push({ label: vscode.l10n.t("New Session from Before It"), run: () => this.inSession(row, () => this.fork(row.runId)) });
    }
    await pick(row.title, can);
  }

  private item(row: Row, run: () => unknown): Choice {
    const parts = [STATES[row.state]?.() ?? row.state, row.step, when(row.modified), withCached(row.cost === undefined ? "" : `$${row.cost.toFixed(3)}`, row.cachedPercent ?? 0)];
    return {
      label: `$(${ICONS[row.state] ?? "circle-outline"}) ${row.title}`,
      description: parts.filter(Boolean).join(" · "),
      ...(row.excerpt ? { detail: row.excerpt } : {}),
      run,
    };
  }

  /** A run of this session that has ended, chosen by the user; the newest first. */
  private async ended(): Promise<string | undefined> {
    const rows = (await this.agent.call<Row[]>("codeagent.runs")) ?? [];
    const here = rows.filter((row) => row.sessionId === this.store.state.sessionId && !UNDONE.includes(row.state));
    if (here.length === 0) void vscode.window.showInformationMessage(vscode.l10n.t("This session has no run that has ended."));
    return here.length ? this.which(here.map(({ runId: id, title }) => ({ id, title }))) : undefined;
  }

  private async which(runs: readonly { id: string; title: string }[]): Promise<string | undefined> {
    if (runs.length === 0) return undefined;
    const items = runs.map(({ id, title }) => ({ label: title, id }));
    return (await vscode.window.showQuickPick(items, { title: vscode.l10n.t("Which run?") }))?.id;
  }

  private async inSession(row: Row, work: () => Promise<void>): Promise<void> {
    if (row.sessionId !== this.store.state.sessionId) await this.resume(row.sessionId);
    await work();
  }

  private async resume(sessionId: string): Promise<void> {
    await this.agent.enter("codeagent.session.resume", { sessionId });
  }
}

const STATES: Readonly<Record<string, () => string>> = {
  running: () => vscode.l10n.t("at work"),
  waiting: () => vscode.l10n.t("waits for you"),
  queued: () => vscode.l10n.t("queued"),
  completed: () => vscode.l10n.t("done"),
  failed: () => vscode.l10n.t("failed"),
  stopped: () => vscode.l10n.t("stopped"),
  cancelled: () => vscode.l10n.t("cancelled"),
  rejected: () => vscode.l10n.t("discarded"),
  interrupted: () => vscode.l10n.t("interrupted"),
  withdrawn: () => vscode.l10n.t("left out"),
};

async function pick(title: string, items: readonly Choice[]): Promise<void> {
  const chosen = await vscode.window.showQuickPick(items, { title, matchOnDescription: true, matchOnDetail: true });
  await chosen?.run();
}

function when(seconds: number | undefined): string {
  return seconds === undefined ? "" : new Date(seconds * 1000).toLocaleString(vscode.env.language);
}
