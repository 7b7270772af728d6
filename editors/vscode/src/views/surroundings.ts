/** What stands around the chat's input: the current file and selection, the model, its window, the mode and the effort. */
import * as vscode from "vscode";
import type { Agent } from "../agent";
import type { Controls, Place, Told } from "../chat";
import { modelIsSet, own } from "../server/configuration";
import type { Store } from "../store";

const PAUSE_MS = 120;
export const EFFORTS = ["auto", "none", "low", "medium", "high"] as const;

interface Known {
  readonly name: string;
  readonly facts?: Readonly<Record<string, { readonly value?: unknown }>>;
}

export class Surroundings implements vscode.Disposable {
  /** Chosen in this window; the settings count else. */
  private model = "";
  private mode = "";
  private window = 0;
  private asked = "";
  private timer: NodeJS.Timeout | undefined;
  private readonly parts: vscode.Disposable[];

  constructor(
    private readonly agent: Agent,
    store: Store,
    private readonly tell: (message: Told) => void,
  ) {
    const place = (): void => {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.tell(this.place()), PAUSE_MS);
    };
    this.parts = [
      vscode.window.onDidChangeActiveTextEditor(place),
      vscode.window.onDidChangeTextEditorSelection(place),
      vscode.workspace.onDidChangeConfiguration((event) => event.affectsConfiguration("codeagent") && this.draw()),
      store.onEvent(({ type }) => type === "usage" && void this.learn()),
    ];
  }

  /** All of it, for a webview that begins. */
  all(): readonly Told[] {
    return [this.place(), { type: "controls", controls: this.controls() }];
  }

  chose(what: "model" | "mode", value: string): void {
    this[what] = value;
    this.window = 0;
    this.asked = "";
    this.draw();
  }

  dispose(): void {
    clearTimeout(this.timer);
    for (const part of this.parts) part.dispose();
  }

  private draw(): void {
    this.tell({ type: "controls", controls: this.controls() });
  }

  /** What is chosen: the model, how much it may do unasked, how much it thinks. */
  controls(): Controls {
    const name = this.model || own<string>("model.name", "");
    const model = own<string>("model.provider", "auto") === "scripted" ? (name.split(/[\\/]/).at(-1) ?? "") : name;
    return { model, mode: this.mode || own("permissions.mode", "ask"), effort: own("model.effort", "auto"), isSet: modelIsSet(), window: this.window || set("model.contextWindow") };
  }

  private place(): Told {
    const editor = vscode.window.activeTextEditor;
    const root = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath ?? "";
    if (!editor || !["file", "untitled"].includes(editor.document.uri.scheme)) return { type: "place", place: undefined, root };
    const { start, end, isEmpty } = editor.selection;
    const at = ({ line, character }: vscode.Position): { line: number; character: number } => ({ line, character });
    const place: Place = {
      uri: editor.document.uri.toString(),
      label: vscode.workspace.asRelativePath(editor.document.uri),
      ...(isEmpty ? {} : { range: { start: at(start), end: at(end) } }),
    };
    return { type: "place", place, root };
  }

  /** Asks once how large the window of the model is, when it was used: before, nobody is asked for nothing. */
  private async learn(): Promise<void> {
    const { model } = this.controls();
    if (this.window || this.asked === `${model}!`) return;
    this.asked = `${model}!`;
    const known = (await this.agent.call<Known[]>("codeagent.model.list", { details: true }).catch(() => undefined)) ?? [];
    const found = known.find(({ name }) => name === (this.model || own("model.name", ""))) ?? (known.length === 1 ? known[0] : undefined);
    const value = found?.facts?.["contextWindow"]?.value ?? found?.facts?.["context_window"]?.value;
    if (typeof value === "number") this.window = value;
    if (!this.model && found && !own<string>("model.name", "")) this.model = found.name;
    this.draw();
  }
}

/** A number of the settings, 0 where there is none. */
function set(key: string): number {
  const value = own<unknown>(key, 0);
  return typeof value === "number" ? value : 0;
}
