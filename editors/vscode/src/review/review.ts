/**
 * The review of a run's changes: a multi-file diff, decisions by file and by hunk from lenses, title buttons, keys
 * and the tree. Both sides are virtual documents; nothing is in the user's files before they accept it.
 */
import * as vscode from "vscode";
import type { Agent } from "../agent";
import type { Offered } from "../server/offered";
import { type FileState, type Run, withChanges } from "../state";
import type { Store } from "../store";
import { type Hunk, hunkAt, hunksByFile } from "./hunks";
import { InCode } from "./inCode";
import { pathOf } from "./paths";
import { ownTitle, shortTitle, titledRun } from "./titles";
import { verdictsOf } from "./verdicts";

export const BASE = "codeagent-base";
export const PROPOSED = "codeagent-proposed";
const SHOWN_AT_ONCE = 200;
const TYPING_MS = 500;

/** A file of a run's changes, or one hunk of it. */
export interface Place {
  readonly runId: string;
  readonly path: string;
  readonly hunk?: string;
}

/** What `codeagent.review` answers; `proof` are sentences on what was tried on the changes. */
interface Answer {
  readonly diff: string;
  readonly digest?: string;
  readonly proof?: readonly string[];
  readonly unneeded?: readonly string[];
}

export class Review implements vscode.Disposable {
  /** The same changes in the editors of the files themselves. */
  readonly inCode: InCode;
  private readonly hunks = new Map<string, ReadonlyMap<string, readonly Hunk[]>>();
  private readonly digests = new Map<string, string | undefined>();
  private readonly proofs = new Map<string, readonly string[]>();
  private readonly settledTexts = new Map<string, string>();
  private readonly titles = new Map<string, string>();
  private readonly content = new vscode.EventEmitter<vscode.Uri>();
  private readonly lenses = new vscode.EventEmitter<void>();
  private readonly parts: vscode.Disposable[];
  private timer: NodeJS.Timeout | undefined;
  private previous: Readonly<Record<string, Run>> = {};
  /** Hunks are known anew. */
  readonly onHunks = this.lenses.event;

  constructor(
    private readonly agent: Agent,
    private readonly store: Store,
    private readonly offered: Offered,
  ) {
    this.inCode = new InCode(
      (runId) => store.state.questions.some((open) => open.runId === runId && open.aboutChanges),
      (runId) => verdictsOf(store.state.runs[runId]),
      (runId) => shortTitle(store.state.runs[runId]),
    );
    const provider = (side: "base" | "text"): vscode.TextDocumentContentProvider => ({
      onDidChange: this.content.event,
      provideTextDocumentContent: (uri) => this.text(uri, side),
    });
    this.parts = [
      vscode.workspace.registerTextDocumentContentProvider(BASE, provider("base")),
      vscode.workspace.registerTextDocumentContentProvider(PROPOSED, provider("text")),
      vscode.languages.registerCodeLensProvider(
        { scheme: PROPOSED },
        { onDidChangeCodeLenses: this.lenses.event, provideCodeLenses: (document) => this.lensesOf(document) },
      ),
      store.onChange((state) => this.follow(state.runs)),
      store.onEvent(({ type }) => type === "local_gone" && this.digests.clear()), // a new server knows none of them
      vscode.window.tabGroups.onDidChangeTabs(() => this.contexts()),
      vscode.window.onDidChangeActiveTextEditor(() => this.contexts()),
      vscode.workspace.onDidChangeTextDocument(({ document }) => this.typed(document.uri.fsPath)),
    ];
  }

  /** Opens the changes of a run, of the newest one with changes by default. */
  async open(runId?: string): Promise<void> {
    const run = runId === undefined ? withChanges(this.store.state) : this.store.state.runs[runId];
    const files = Object.values(run?.staged ?? {});
    if (!run || files.length === 0) {
      void vscode.window.showInformationMessage(vscode.l10n.t("No changes wait for a decision."));
      return;
    }
    await this.refresh(run.runId);
    const title = ownTitle(verdictsOf(run).title, run.runId, this.titles); // the editor adds the number of files
    this.titles.set(run.runId, title);
    const rows = files
      .slice(0, SHOWN_AT_ONCE)
      .map((file) => [
        vscode.Uri.file(file.path),
        file.base === null ? undefined : sideOf(BASE, run.runId, file.path),
        file.text === null ? undefined : sideOf(PROPOSED, run.runId, file.path),
      ]);
    await vscode.commands.executeCommand("vscode.changes", title, rows);
    this.contexts();
  }

  /** Opens the diff of one file. */
  async openFile(place: Place): Promise<void> {
    await this.refresh(place.runId);
    const [left, right] = [sideOf(BASE, place.runId, place.path), sideOf(PROPOSED, place.runId, place.path)];
    const hunk = this.of(place).find((item) => item.id === place.hunk);
    const selection = hunk && new vscode.Range(hunk.start, 0, hunk.start, 0);
    const name = vscode.workspace.asRelativePath(place.path);
    const title = vscode.l10n.t("{0} (proposed)", name);
    await vscode.commands.executeCommand("vscode.diff", left, right, title, selection ? { selection } : {});
  }

  /** The run whose review is shown: in the editor whose title button was pressed, else in the active one. */
  shown(given?: unknown): string | undefined {
    const button = given instanceof vscode.Uri ? placeOf(given) : undefined;
    const active = vscode.window.activeTextEditor;
    const place = button ?? (active && placeOf(active.document.uri));
    const tab = vscode.window.tabGroups.activeTabGroup.activeTab;
    return place?.runId ?? (tab && this.runOf(tab));
  }

  /** Accepts or discards the changes of a run, or the chosen ones; after a review only as it showed them. */
  async settle(verdict: "apply" | "discard", runId: string, chosen: object): Promise<void> {
    const digest = this.digests.get(runId);
    try {
      await this.agent.call(`codeagent.${verdict}`, { runId, ...chosen, ...(digest && { digest }) });
    } catch (error) {
      this.again(runId); // it may show what is no longer so
      throw error;
    }
  }

  /** Accepts or discards a file, a hunk, or (no place) what the active editor shows at the cursor. */
  async decide(verdict: "apply" | "discard", what: "file" | "hunk", given?: Place): Promise<void> {
    const place = given ?? this.atCursor(what);
    if (!place) return this.decideInCode(verdict, what);
    const whole = what === "file" || place.hunk === undefined || this.of(place).length < 2;
    const chosen = whole ? { files: [place.path] } : { hunks: [`${place.path}#${place.hunk}`] };
    await this.settle(verdict, place.runId, chosen);
  }

  private async decideInCode(verdict: "apply" | "discard", what: "file" | "hunk"): Promise<void> {
    const chosen = await this.inCode.chosen(what);
    if (chosen) return this.settle(verdict, chosen.runId, chosen);
    void vscode.window.showInformationMessage(vscode.l10n.t("Put the cursor into a proposed change first."));
  }

  /** Moves the cursor to the next or previous proposed change. */
  async move(by: 1 | -1): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    if (!editor) return;
    const place = placeOf(editor.document.uri);
    const starts = place ? this.of(place).map((hunk) => hunk.start) : await this.inCode.lines(editor.document);
    const line = editor.selection.active.line;
    const target = by > 0 ? starts.find((start) => start > line) : starts.findLast((start) => start < line);
    if (target === undefined) return;
    editor.selection = new vscode.Selection(target, 0, target, 0);
    editor.revealRange(editor.selection, vscode.TextEditorRevealType.InCenterIfOutsideViewport);
  }

  /** The hunks of a file, as far as they are known. */
  of(place: Place): readonly Hunk[] {
    return this.hunks.get(place.runId)?.get(place.path) ?? [];
  }

  /** Learns the hunks of a run from the server, which names them. */
  async refresh(runId: string): Promise<void> {
    const staged = Object.keys(this.store.state.runs[runId]?.staged ?? {});
    if (staged.length === 0) {
      this.hunks.delete(runId);
      this.digests.delete(runId);
    } else {
      const review = await this.agent.call<Answer>("codeagent.review", { runId });
      this.digests.set(runId, review?.digest);
      this.proofs.set(runId, review?.proof ?? []);
      const named = [...hunksByFile(review?.diff ?? "", review?.unneeded)];
      const known = named.map(([name, hunks], index) => [pathOf(name, staged) ?? staged[index] ?? name, hunks] as const);
      this.hunks.set(runId, new Map(known));
    }
    this.lenses.fire();
  }

  dispose(): void {
    clearTimeout(this.timer);
    for (const part of this.parts) part.dispose();
    this.content.dispose();
    this.lenses.dispose();
  }

  private text(uri: vscode.Uri, side: "base" | "text"): string {
    const place = placeOf(uri);
    const file = place && this.store.state.runs[place.runId]?.staged[place.path];
    if (file) return file[side] ?? "";
    return (place && this.settledTexts.get(`${place.runId} ${place.path}`)) ?? "";
  }

  private lensesOf(document: vscode.TextDocument): vscode.CodeLens[] {
    const place = placeOf(document.uri);
    if (!place || !this.store.state.runs[place.runId]?.staged[place.path]) return [];
    const lens = (line: number, title: string, command: string, argument: Place): vscode.CodeLens =>
      new vscode.CodeLens(new vscode.Range(line, 0, line, 0), this.offered.keep({ title, command, arguments: [argument] }));
    const hunks = this.of(place);
    const words = verdictsOf(this.store.state.runs[place.runId]);
    const last = Math.max(0, document.lineCount - 1);
    const note = (line: number, title: string): vscode.CodeLens =>
      new vscode.CodeLens(new vscode.Range(Math.min(line, last), 0, Math.min(line, last), 0), { title, command: "" });
    const first = Math.min(hunks[0]?.start ?? 0, last); // the lines before it may be folded away
    return [
      ...hunks.filter((hunk) => hunk.unneeded).map((hunk) => note(hunk.start, vscode.l10n.t("$(circle-slash) Not needed for the tests"))),
      ...(hunks.length < 2 ? [] : hunks).flatMap((hunk) => [
        lens(Math.min(hunk.start, last), words.accept, "codeagent.review.acceptHunk", { ...place, hunk: hunk.id }),
        lens(Math.min(hunk.start, last), words.discard, "codeagent.review.discardHunk", { ...place, hunk: hunk.id }),
      ]),
      lens(first, words.acceptFile, "codeagent.review.acceptFile", place),
      lens(first, words.discardFile, "codeagent.review.discardFile", place),
      ...(this.proofs.get(place.runId) ?? []).map((line) => note(first, line)),
    ];
  }

  private atCursor(what: "file" | "hunk"): Place | undefined {
    const editor = vscode.window.activeTextEditor;
    const place = editor && placeOf(editor.document.uri);
    if (!place || what === "file") return place;
    const hunk = hunkAt(this.of(place), editor.selection.active.line);
    return hunk ? { ...place, hunk: hunk.id } : place;
  }

  /** Brings documents, hunks, tabs and saved files up to date with the changes. */
  private follow(runs: Readonly<Record<string, Run>>): void {
    for (const [runId, run] of Object.entries(runs)) {
      const before = this.previous[runId]?.staged ?? {};
      if (this.previous[runId]?.proposal !== run.proposal) this.again(runId);
      if (before === run.staged) continue;
      for (const path of new Set([...Object.keys(before), ...Object.keys(run.staged)])) {
        if (before[path] !== run.staged[path]) this.changed(run, path, before[path]);
      }
      this.again(runId);
      if (Object.keys(run.staged).length === 0) void this.close(runId);
    }
    this.previous = runs;
    this.contexts();
  }

  /** What was tried on a file's changes may be outdated by what the user types into it. */
  private typed(path: string): void {
    for (const [runId, run] of Object.entries(this.store.state.runs)) {
      if (!run.staged[path] || (this.proofs.get(runId) ?? []).length === 0) continue;
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.again(runId), TYPING_MS);
    }
  }

  /** Learns about a run again that is being reviewed. */
  private again(runId: string): void {
    if (this.hunks.has(runId)) void this.refresh(runId).catch(() => undefined);
  }

  private changed(run: Run, path: string, before: FileState | undefined): void {
    if (!run.staged[path] && before) {
      const last = run.blocks.findLast((block) => block.kind === "applied" || block.kind === "discarded");
      const text = last?.kind === "applied" ? before.text : before.base;
      this.settledTexts.set(`${run.runId} ${path}`, text ?? "");
    }
    this.content.fire(sideOf(BASE, run.runId, path));
    this.content.fire(sideOf(PROPOSED, run.runId, path));
  }

  private async close(runId: string): Promise<void> {
    const tabs = vscode.window.tabGroups.all.flatMap((group) => group.tabs);
    await vscode.window.tabGroups.close(tabs.filter((tab) => this.runOf(tab) === runId), true);
    this.titles.delete(runId);
  }

  /** The run whose changes a tab shows. */
  private runOf({ input, label }: vscode.Tab): string | undefined {
    const isDiff = input instanceof vscode.TabInputTextDiff && input.modified.scheme === PROPOSED;
    return isDiff ? input.modified.query : titledRun(label, this.titles);
  }

  private contexts(): void {
    const tabs = vscode.window.tabGroups.all.flatMap((group) => group.tabs);
    const reviewing = tabs.some((tab) => this.runOf(tab) !== undefined);
    const here = vscode.window.activeTextEditor?.document.uri;
    const files = Object.values(this.store.state.runs).map((run) => here?.scheme === "file" && run.staged[here.fsPath]);
    const changed = files.some((file) => file && file.base !== null && file.text !== null);
    void vscode.commands.executeCommand("setContext", "codeagent.reviewing", reviewing);
    void vscode.commands.executeCommand("setContext", "codeagent.changedHere", changed);
  }
}

/** Saves what an accepted change touched, where the user wants that. */
export async function saveFiles(paths: readonly string[]): Promise<void> {
  for (const document of vscode.workspace.textDocuments) {
    if (document.isDirty && document.uri.scheme === "file" && paths.includes(document.uri.fsPath)) await document.save();
  }
}

function sideOf(scheme: string, runId: string, path: string): vscode.Uri {
  return vscode.Uri.file(path).with({ scheme, query: runId });
}

function placeOf(uri: vscode.Uri): Place | undefined {
  if (uri.scheme !== PROPOSED && uri.scheme !== BASE) return undefined;
  return { runId: uri.query, path: uri.with({ scheme: "file", query: "" }).fsPath };
}
