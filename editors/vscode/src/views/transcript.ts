/**
 * The transcript panel: a webview under a strict content policy that is told only what changed.
 * Not here: drawing (`webview/`), what changed (`transcript.ts`).
 */
import { randomBytes } from "node:crypto";
import * as path from "node:path";
import * as vscode from "vscode";
import type { State } from "../state";
import type { Store } from "../store";
import { patches } from "../transcript";
import { words } from "./words";

/** What the webview says. Checked before it is believed. */
type Said =
  | { readonly type: "ready" | "stop" }
  | { readonly type: "send"; readonly text: string }
  | { readonly type: "open"; readonly file: string; readonly line: number }
  | { readonly type: "copy"; readonly text: string }
  | { readonly type: "link"; readonly url: string }
  | { readonly type: "answer"; readonly requestId: string; readonly answer: string }
  | { readonly type: "question"; readonly requestId: string }
  | { readonly type: "review" | "undo"; readonly runId: string };

/** What the webview's buttons lead to. */
export interface Actions {
  /** Whether it has become a task. */
  send(text: string): Promise<boolean>;
  respond(requestId: string, answer: string): Promise<void>;
}

export class Transcript implements vscode.WebviewViewProvider, vscode.Disposable {
  static readonly ID = "codeagent.transcript";
  private view: vscode.WebviewView | undefined;
  private told: State | undefined;
  private readonly parts: vscode.Disposable[];

  constructor(
    private readonly extension: vscode.Uri,
    private readonly store: Store,
    private readonly actions: Actions,
  ) {
    this.parts = [
      vscode.window.registerWebviewViewProvider(Transcript.ID, this),
      store.onChange((state) => this.tell(state)),
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

  /** Shows the panel, without taking the keyboard. */
  async reveal(): Promise<void> {
    if (this.view) this.view.show(true);
    else await vscode.commands.executeCommand(`${Transcript.ID}.focus`, { preserveFocus: true });
  }

  dispose(): void {
    for (const part of this.parts) part.dispose();
  }

  private tell(state: State): void {
    if (!this.view || !this.told) return;
    const news = patches(this.told, state);
    this.told = state;
    if (news.length > 0) void this.view.webview.postMessage({ type: "patches", patches: news });
  }

  private async heard(said: Said): Promise<void> {
    switch (said.type) {
      case "ready":
        this.told = this.store.state;
        await this.view?.webview.postMessage({ type: "patches", patches: patches(undefined, this.store.state) });
        return;
      case "send":
        if (await this.actions.send(String(said.text))) return;
        return void (await this.view?.webview.postMessage({ type: "unsent", text: String(said.text) }));
      case "stop":
        return void (await vscode.commands.executeCommand("codeagent.cancel"));
      case "copy":
        await vscode.env.clipboard.writeText(String(said.text));
        return void (await this.view?.webview.postMessage({ type: "copied" }));
      case "answer":
        return this.actions.respond(String(said.requestId), String(said.answer));
      case "question":
        return void (await vscode.commands.executeCommand("codeagent.pending", String(said.requestId)));
      case "review":
        return void (await vscode.commands.executeCommand("codeagent.review", { runId: String(said.runId) }));
      case "undo":
        return void (await vscode.commands.executeCommand("codeagent.undo", { runId: String(said.runId) }));
      case "open":
        return openFile(String(said.file), Number(said.line));
      case "link": {
        const url = vscode.Uri.parse(String(said.url), true);
        if (url.scheme === "https" || url.scheme === "http") await vscode.env.openExternal(url);
        return;
      }
    }
  }

  private page(webview: vscode.Webview): string {
    const nonce = randomBytes(16).toString("hex");
    const from = (...parts: string[]): vscode.Uri => webview.asWebviewUri(vscode.Uri.joinPath(this.extension, ...parts));
    const policy = `default-src 'none'; style-src ${webview.cspSource}; font-src ${webview.cspSource}; script-src 'nonce-${nonce}'`;
    return `<!DOCTYPE html>
<html lang="${vscode.env.language}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="${from("media", "transcript.css").toString()}">
</head>
<body data-words="${attribute(JSON.stringify(words()))}">
<main id="log" role="log" aria-live="polite"></main>
<form id="composer"></form>
<script nonce="${nonce}" src="${from("dist", "transcript.js").toString()}"></script>
</body>
</html>`;
  }
}

/** Opens a file of the workspace at a line; others are left alone. */
async function openFile(name: string, line: number): Promise<void> {
  for (const folder of vscode.workspace.workspaceFolders ?? []) {
    const file = path.resolve(folder.uri.fsPath, name);
    const inside = file === folder.uri.fsPath || file.startsWith(folder.uri.fsPath + path.sep);
    const uri = vscode.Uri.file(file);
    const found = inside && (await vscode.workspace.fs.stat(uri).then(() => true, () => false));
    if (!found) continue;
    const at = new vscode.Position(Math.max(0, (Number.isFinite(line) ? line : 1) - 1), 0);
    await vscode.window.showTextDocument(uri, { selection: new vscode.Range(at, at) });
    return;
  }
  void vscode.window.showInformationMessage(vscode.l10n.t("{0} is not in this workspace.", name));
}

function attribute(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("<", "&lt;");
}
