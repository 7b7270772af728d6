/** The tree of runs: what waits for the user, the plan with the state of its steps, the changed files and hunks. */
import * as path from "node:path";
import * as vscode from "vscode";
import type { Place, Review } from "../review/review";
import type { Hunk } from "../review/hunks";
import { attemptsOf, type FileState, type Question, type Run, type State, type Step } from "../state";
import type { Store } from "../store";

type Node =
  | { readonly kind: "run"; readonly run: Run }
  | { readonly kind: "question"; readonly question: Question }
  | ({ readonly kind: "step"; readonly step: Step } & StepPlace)
  | { readonly kind: "changes"; readonly run: Run; readonly runId: string }
  | ({ readonly kind: "file"; readonly file: FileState } & Place)
  | ({ readonly kind: "hunk"; readonly shown: Hunk } & Place);

/** A step of a run's plan. */
export interface StepPlace {
  readonly runId: string;
  readonly stepId: string;
}

const STEP_ICONS: Record<Step["state"], [string, string?]> = {
  pending: ["circle-outline"],
  running: ["sync~spin", "charts.blue"],
  completed: ["pass-filled", "testing.iconPassed"],
  failed: ["error", "testing.iconFailed"],
  skipped: ["debug-step-over"],
  cancelled: ["circle-slash"],
};

const RUN_ICONS: Record<Run["status"], [string, string?]> = {
  running: ["sync~spin", "charts.blue"],
  completed: ["pass", "testing.iconPassed"],
  failed: ["error", "testing.iconFailed"],
  cancelled: ["circle-slash"],
  stopped: ["warning", "charts.yellow"],
  rejected: ["discard"],
  waiting: ["question", "charts.yellow"],
  lost: ["debug-disconnect", "charts.yellow"],
};

export class RunTree implements vscode.TreeDataProvider<Node>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<undefined>();
  private readonly parts: vscode.Disposable[];
  private drawn: readonly unknown[] = [];
  readonly onDidChangeTreeData = this.changed.event;

  constructor(
    private readonly store: Store,
    private readonly review: Review,
  ) {
    const view = vscode.window.createTreeView("codeagent.run", { treeDataProvider: this });
    this.parts = [
      view,
      store.onGlance((state) => {
        const waiting = state.questions.length;
        view.badge = waiting ? { value: waiting, tooltip: vscode.l10n.t("{0} waiting for you", waiting) } : undefined;
        this.draw(state);
      }),
      review.onHunks(() => this.changed.fire(undefined)),
    ];
  }

  getChildren(node?: Node): Node[] {
    if (!node) return this.roots();
    switch (node.kind) {
      case "run":
        return this.ofRun(node.run);
      case "changes":
        return Object.values(node.run.staged).map((file) => ({ kind: "file", file, runId: node.runId, path: file.path }));
      case "file":
        return this.hunks(node);
    }
    return [];
  }

  getTreeItem(node: Node): vscode.TreeItem {
    switch (node.kind) {
      case "run":
        return this.runItem(node.run);
      case "question":
        return questionItem(node.question);
      case "step":
        return stepItem(node.step);
      case "changes":
        return changesItem(node.run);
      case "file":
        return this.fileItem(node);
      case "hunk":
        return hunkItem(node);
    }
  }

  dispose(): void {
    for (const part of this.parts) part.dispose();
    this.changed.dispose();
  }

  /** Draws only when something looks different: a row that is drawn again slips from under the mouse. */
  private draw(state: State): void {
    const now = looks(state);
    if (now.length === this.drawn.length && now.every((part, index) => part === this.drawn[index])) return;
    this.drawn = now;
    this.changed.fire(undefined);
  }

  /** The newest run, and those before it that still wait for something. */
  private roots(): Node[] {
    const { order, runs, questions } = this.store.state;
    const whole = order.flatMap((id) => (runs[id] && runs[id].attemptOf === undefined ? [runs[id]] : [])).reverse();
    return whole.flatMap((run, index): Node[] => {
      const waits = Object.keys(run.staged).length > 0 || questions.some((item) => item.runId === run.runId);
      return index === 0 || waits || run.status === "running" ? [{ kind: "run", run }] : [];
    });
  }

  private ofRun(run: Run): Node[] {
    const open = this.store.state.questions.filter((item) => item.runId === run.runId);
    const steps = run.plan?.steps ?? [];
    return [
      ...open.map((question): Node => ({ kind: "question", question })),
      ...steps.map((step): Node => ({ kind: "step", step, runId: run.runId, stepId: step.stepId })),
      ...(Object.keys(run.staged).length ? [{ kind: "changes", run, runId: run.runId } as const] : []),
      ...attemptsOf(this.store.state, run.runId).map((attempt): Node => ({ kind: "run", run: attempt })),
    ];
  }

  private hunks(place: Place): Node[] {
    const hunks = this.review.of(place);
    return hunks.length < 2
      ? []
      : hunks.map((shown) => ({ kind: "hunk", shown, runId: place.runId, path: place.path, hunk: shown.id }));
  }

  /** A run; an attempt has no title of its own, and it or its run is what the transcript shows, as the user chooses. */
  private runItem(run: Run): vscode.TreeItem {
    const { Collapsed, Expanded } = vscode.TreeItemCollapsibleState;
    const number = run.attempt;
    const title = number ? vscode.l10n.t("Attempt {0}", number) : run.title || vscode.l10n.t("Run");
    const item = new vscode.TreeItem(title, number ? Collapsed : Expanded);
    item.description = run.status === "running" ? run.activity : statusWords(run.status);
    item.iconPath = icon(...RUN_ICONS[run.status]);
    item.tooltip = run.error ?? title;
    item.contextValue = `run:${run.status}`;
    item.id = run.runId;
    if (number || attemptsOf(this.store.state, run.runId).length > 0) {
      item.command = { title: "", command: "codeagent.transcript.show", arguments: [{ runId: run.runId }] };
    }
    return item;
  }

  private fileItem(node: Place & { readonly file: FileState }): vscode.TreeItem {
    const many = this.review.of(node).length > 1;
    const state = many ? vscode.TreeItemCollapsibleState.Expanded : vscode.TreeItemCollapsibleState.None;
    const item = new vscode.TreeItem(vscode.Uri.file(node.path), state);
    item.description = describe(node.file);
    item.contextValue = "file";
    item.id = `${node.runId} ${node.path} ${many}`; // so that it unfolds when its hunks become known
    item.command = { title: "", command: "codeagent.review.openFile", arguments: [plain(node)] };
    return item;
  }
}

/** All that the tree shows of a state. */
function looks({ order, runs, questions }: State): readonly unknown[] {
  const ofRun = (run: Run): unknown[] => [run.runId, run.title, run.status, run.activity, run.error, run.plan, run.staged];
  return [questions, ...order.flatMap((id) => (runs[id] ? ofRun(runs[id]) : []))];
}

function questionItem(question: Question): vscode.TreeItem {
  const item = new vscode.TreeItem(question.title.replace(/\s+/g, " "));
  item.iconPath = icon("bell-dot", "charts.yellow");
  item.tooltip = question.title;
  item.contextValue = "question";
  item.command = { title: vscode.l10n.t("Answer…"), command: "codeagent.pending", arguments: [question.requestId] };
  return item;
}

function stepItem(step: Step): vscode.TreeItem {
  const item = new vscode.TreeItem(step.title);
  item.iconPath = icon(...STEP_ICONS[step.state]);
  item.tooltip = new vscode.MarkdownString().appendText((step.state === "failed" && step.error) || step.description || step.title);
  if (step.state === "failed" && step.error) item.description = step.error;
  item.contextValue = `step:${step.state}`;
  return item;
}

function changesItem(run: Run): vscode.TreeItem {
  const count = Object.keys(run.staged).length;
  const label = count === 1 ? vscode.l10n.t("1 file to decide on") : vscode.l10n.t("{0} files to decide on", count);
  const item = new vscode.TreeItem(label, vscode.TreeItemCollapsibleState.Expanded);
  item.iconPath = icon("diff-multiple");
  item.contextValue = "changes";
  item.command = { title: "", command: "codeagent.review", arguments: [{ runId: run.runId }] };
  return item;
}

function hunkItem(node: Place & { readonly shown: Hunk }): vscode.TreeItem {
  const item = new vscode.TreeItem(node.shown.preview || "…");
  item.description = `+${node.shown.added} −${node.shown.removed}`;
  item.iconPath = icon("diff");
  item.contextValue = "hunk";
  item.command = { title: "", command: "codeagent.review.openFile", arguments: [plain(node)] };
  return item;
}

function describe(file: FileState): string {
  const folder = path.dirname(vscode.workspace.asRelativePath(file.path));
  const kind = file.text === null ? vscode.l10n.t("deleted") : file.base === null ? vscode.l10n.t("new") : "";
  const moved = file.movedFrom ? vscode.l10n.t("from {0}", vscode.workspace.asRelativePath(file.movedFrom)) : "";
  return [folder === "." ? "" : folder, kind, moved].filter(Boolean).join(" · ");
}

function statusWords(status: Run["status"]): string {
  const words: Record<Run["status"], string> = {
    running: vscode.l10n.t("working"),
    completed: vscode.l10n.t("done"),
    failed: vscode.l10n.t("failed"),
    cancelled: vscode.l10n.t("stopped by you"),
    stopped: vscode.l10n.t("stopped"),
    rejected: vscode.l10n.t("not accepted"),
    waiting: vscode.l10n.t("waits for your answer"),
    lost: vscode.l10n.t("lost with the server"),
  };
  return words[status];
}

function plain(place: Place): Place {
  const { runId, path: file, hunk } = place;
  return hunk === undefined ? { runId, path: file } : { runId, path: file, hunk };
}

function icon(id: string, color?: string): vscode.ThemeIcon {
  return new vscode.ThemeIcon(id, color === undefined ? undefined : new vscode.ThemeColor(color));
}
