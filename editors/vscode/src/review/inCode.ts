/**
 * Changes that wait, in the editor of the file itself: the server's lenses in the words of the review, and which change
 * is at the cursor. The server knows where each stands, also after the user has typed. Not here: deciding (`review.ts`).
 */
import * as vscode from "vscode";
import type { Verdicts } from "./verdicts";

const ANSWERS = "codeagent.respond";

/** A change where it stands in the file as it is now; `hunk` is what the server calls it. */
interface Placed {
  readonly line: number;
  readonly runId: string;
  readonly hunk: string;
}

/** What `codeagent.apply` and `codeagent.discard` take. */
export interface Chosen {
  readonly runId: string;
  readonly files?: readonly string[];
  readonly hunks?: readonly string[];
}

export class InCode {
  private readonly placed = new Map<string, readonly Placed[]>();

  /**
   * `isAsked` says whether the question about a run's changes is open: then its own lenses say what the run's would. `verdicts` are the words for it,
   * `taskOf` names it where changes of others stand beside them.
   */
  constructor(
    private readonly isAsked: (runId: string) => boolean,
    private readonly verdicts: (runId: string) => Verdicts,
    private readonly taskOf: (runId: string) => string,
  ) {}

  /**
   * The lenses that the server offers for a file, and those for the whole file beside the first of several changes. What
   * is asked `inChat` is not asked again above the code.
   */
  lenses(document: vscode.TextDocument, found: readonly vscode.CodeLens[], inChat: boolean): vscode.CodeLens[] {
    const placed = found.flatMap((lens) => placeOf(lens) ?? []);
    this.placed.set(document.uri.toString(), placed.toSorted((one, other) => one.line - other.line));
    const shown = found.filter((lens) => !this.isAsked(wholeRun(lens)) && !(inChat && lens.command?.command === ANSWERS));
    const runs = [...new Set(placed.map(({ runId }) => runId))];
    const several = runs.length > 1;
    const worded = shown.map((lens) => (placeOf(lens) || named(lens, "discard") ? this.inWords(lens, several) : lens));
    return [...worded, ...runs.flatMap((runId) => this.wholeFile(document, placed.filter((each) => each.runId === runId), several))];
  }

  /** The change at the cursor of the active editor, or all of its file; undefined where none waits. */
  async chosen(what: "file" | "hunk"): Promise<Chosen | undefined> {
    const editor = vscode.window.activeTextEditor;
    const all = editor ? await this.of(editor.document) : [];
    const at = editor?.selection.active.line ?? 0;
    const here = all.findLast(({ line }) => line <= at) ?? all[0];
    if (!editor || !here) return undefined;
    const { runId, hunk } = here;
    return what === "file" ? { runId, files: [editor.document.uri.fsPath] } : { runId, hunks: [hunk] };
  }

  /** The lines at which changes stand. */
  async lines(document: vscode.TextDocument): Promise<readonly number[]> {
    return (await this.of(document)).map(({ line }) => line);
  }

  /** The lenses for the whole file at the first of a run's changes there, where there are several. */
  private wholeFile(document: vscode.TextDocument, placed: readonly Placed[], several: boolean): vscode.CodeLens[] {
    const first = placed[0];
    if (!first || placed.length < 2) return [];
    const range = new vscode.Range(first.line, 0, first.line, 0);
    const place = { runId: first.runId, path: document.uri.fsPath };
    const words = this.verdicts(first.runId);
    const lens = (title: string, command: string): vscode.CodeLens =>
      new vscode.CodeLens(range, { title: this.told(title, first.runId, several), command, arguments: [place] });
    return [lens(words.acceptFile, "codeagent.review.acceptFile"), lens(words.discardFile, "codeagent.review.discardFile")];
  }

  private told(title: string, runId: string, several: boolean): string {
    return several ? `${title} (${this.taskOf(runId)})` : title;
  }

  /** The same lens as in the review. */
  private inWords(lens: vscode.CodeLens, several: boolean): vscode.CodeLens {
    const [accepts, discards] = [named(lens, "apply"), named(lens, "discard")];
    const runId = (accepts ?? discards)?.runId ?? "";
    const words = this.verdicts(runId);
    const title = this.told(accepts ? words.accept : words.discard, runId, several);
    return lens.command ? new vscode.CodeLens(lens.range, { ...lens.command, title }) : lens;
  }

  /** Asks for the lenses, which come through `lenses`. */
  private async of(document: vscode.TextDocument): Promise<readonly Placed[]> {
    if (document.uri.scheme !== "file") return [];
    await vscode.commands.executeCommand("vscode.executeCodeLensProvider", document.uri);
    return this.placed.get(document.uri.toString()) ?? [];
  }
}

/** The run of which a lens offers all changes, else ''. */
function wholeRun({ command }: vscode.CodeLens): string {
  const { runId, ...more } = (command?.arguments?.[0] ?? {}) as { runId?: string };
  const decides = /^codeagent\.(review|apply|discard)$/.test(command?.command ?? "");
  return decides && Object.keys(more).length === 0 ? (runId ?? "") : "";
}

function named({ command }: vscode.CodeLens, verdict: "apply" | "discard"): { runId: string; hunk: string } | undefined {
  const { runId, hunks } = (command?.arguments?.[0] ?? {}) as { runId?: string; hunks?: readonly string[] };
  const hunk = command?.command === `codeagent.${verdict}` && hunks?.length === 1 ? hunks[0] : undefined;
  return runId === undefined || hunk === undefined ? undefined : { runId, hunk };
}

function placeOf(lens: vscode.CodeLens): Placed | undefined {
  const about = named(lens, "apply");
  return about && { line: lens.range.start.line, ...about };
}
