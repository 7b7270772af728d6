/** Markdown to read: shown rendered, read-only, with nothing to save when it is closed. Not here: what it says. */
import * as vscode from "vscode";

const SCHEME = "codeagent-report";

export class Reports implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly texts = new Map<string, string>();
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  private readonly registration = vscode.workspace.registerTextDocumentContentProvider(SCHEME, this);
  readonly onDidChange = this.changed.event;

  /** Shows `markdown` in a tab that is named by `title`. */
  async show(title: string, markdown: string): Promise<void> {
    const name = title.replace(/[/\\?#]/g, " ").slice(0, 60);
    const uri = vscode.Uri.from({ scheme: SCHEME, path: `/${name}.md` });
    this.texts.set(uri.path, markdown);
    this.changed.fire(uri);
    try {
      await vscode.commands.executeCommand("markdown.showPreview", uri);
    } catch {
      await vscode.window.showTextDocument(uri, { preview: true }); // the editor's Markdown is switched off
    }
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.path) ?? "";
  }

  dispose(): void {
    this.registration.dispose();
    this.changed.dispose();
  }
}
