/**
 * The chat: a webview under a strict content policy that is told only what changed.
 * Not here: drawing (`webview/`), what changed (`transcript.ts`), what the user's clicks do (`chatActions.ts`).
 */
import { randomBytes } from "node:crypto";
import * as vscode from "vscode";
import type { Said, Told } from "../chat";
import type { State } from "../state";
import type { Store } from "../store";
import { patches } from "../transcript";
import { unlinked } from "../words";
import { words } from "./words";

/** What the chat needs of others. */
export interface ChatHost {
  /** What the webview says. Checked before it is believed. */
  heard(said: Said): Promise<void>;
  /** The webview is there: what it has to know besides the runs. */
  begin(): readonly Told[];
}

/** So much later it is known whether the whole window was left: then the chat is still where the user comes back to. */
const LEFT_MS = 200;

export class Chat implements vscode.WebviewViewProvider, vscode.Disposable {
  static readonly ID = "codeagent.chat";
  private view: vscode.WebviewView | undefined;
  private told: State | undefined;
  private wantsFocus = false;
  private isUsed = false;
  private readonly early: Told[] = [];
  private readonly parts: vscode.Disposable[];

  constructor(
    private readonly extension: vscode.Uri,
    private readonly store: Store,
    private readonly host: ChatHost,
  ) {
    this.parts = [
      vscode.window.registerWebviewViewProvider(Chat.ID, this),
      store.onChange((state) => this.draw(state)),
      // Not the change by an edit of the agent.
      vscode.window.onDidChangeTextEditorSelection(({ kind }) => {
        if (kind === vscode.TextEditorSelectionChangeKind.Keyboard || kind === vscode.TextEditorSelectionChangeKind.Mouse) this.isUsed = false;
      }),
      store.onGlance(({ questions: { length } }) => {
        if (!this.view) return;
        this.view.badge = length ? { value: length, tooltip: vscode.l10n.t("{0} waiting for you", length) } : undefined;
      }),
    ];
  }

  resolveWebviewView(view: vscode.WebviewView): void {
    this.view = view;
    this.told = undefined;
    view.webview.options = {
      enableScripts: true,
      localResourceRoots: [vscode.Uri.joinPath(this.extension, "dist"), vscode.Uri.joinPath(this.extension, "media")],
    };
    view.webview.onDidReceiveMessage((said: Said) => void this.heard(said));
    view.onDidDispose(() => (this.view = undefined));
    view.webview.html = this.page(view.webview);
  }

  /** Whether the user is at work in it: they see it, and the keyboard was there last. */
  get inUse(): boolean {
    return this.isUsed && this.isShown;
  }

  /** Whether it is seen. */
  get isShown(): boolean {
    return this.view?.visible === true;
  }

  /** Shows the chat, without taking the keyboard unless that is asked for. */
  async reveal(focus = false): Promise<void> {
    if (this.view) this.view.show(!focus);
    else await vscode.commands.executeCommand(`${Chat.ID}.focus`, { preserveFocus: !focus });
    if (focus) this.focus();
  }

  /** Tells the webview something; before it is there, when it comes. */
  tell(message: Told): void {
    if (this.told) void this.view?.webview.postMessage(message);
    else if (["setup", "sessions", "words"].includes(message.type)) this.early.push(message); // it learns the rest when it begins
  }

  dispose(): void {
    for (const part of this.parts) part.dispose();
  }

  private focus(): void {
    if (this.told) this.tell({ type: "focus" });
    else this.wantsFocus = true;
  }

  private draw(state: State): void {
    if (!this.view || !this.told) return;
    const news = patches(this.told, state);
    this.told = state;
    if (news.length > 0) this.tell({ type: "patches", patches: news });
  }

  private async heard(said: Said): Promise<void> {
    if (said.type === "entered") this.isUsed = true;
    else if (said.type === "left") setTimeout(() => (this.isUsed = this.isUsed && !vscode.window.state.focused), LEFT_MS);
    else if (said.type !== "ready") {
      return this.host.heard(said).catch((error: unknown) => {
        void vscode.window.showErrorMessage(unlinked(error instanceof Error ? error.message : String(error)));
      });
    } else this.started();
  }

  private started(): void {
    this.told = this.store.state;
    this.tell({ type: "patches", patches: patches(undefined, this.store.state) });
    for (const message of [...this.host.begin(), ...this.early.splice(0)]) this.tell(message);
    if (this.wantsFocus) this.tell({ type: "focus" });
    this.wantsFocus = false;
  }

  private page(webview: vscode.Webview): string {
    const nonce = randomBytes(16).toString("hex");
    const from = (...parts: string[]): string => webview.asWebviewUri(vscode.Uri.joinPath(this.extension, ...parts)).toString();
    const policy = `default-src 'none'; style-src ${webview.cspSource}; font-src ${webview.cspSource}; script-src 'nonce-${nonce}'; img-src blob:`;
    return `<!DOCTYPE html>
<html lang="${vscode.env.language}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>CodeAgent</title>
<link rel="stylesheet" href="${from("dist", "codicon.css")}">
<link rel="stylesheet" href="${from("media", "chat.css")}">
<link rel="stylesheet" href="${from("media", "code.css")}">
</head>
<body data-words="${attribute(JSON.stringify(words()))}">
<main id="log" role="log" aria-live="polite" aria-label="${attribute(vscode.l10n.t("Conversation"))}" tabindex="0"></main>
<div id="shelf"></div>
<form id="composer"></form>
<script nonce="${nonce}" src="${from("dist", "chat.js")}"></script>
</body>
</html>`;
  }
}

function attribute(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("<", "&lt;");
}
