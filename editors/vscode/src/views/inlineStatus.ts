/** How inline completion stands, as an item beside the language of the file; a click switches it off and on. */
import * as vscode from "vscode";

/** What the server says of it; `detail` is a sentence for the user. */
export interface InlineState {
  readonly state: "off" | "starting" | "ready" | "asking" | "unavailable";
  readonly detail: string;
}

export class InlineStatus implements vscode.Disposable {
  private readonly item = vscode.languages.createLanguageStatusItem("codeagent.inline", [
    { scheme: "file" },
    { scheme: "untitled" },
  ]);

  constructor() {
    this.item.name = "CodeAgent";
    this.show({ state: "off", detail: "" });
  }

  show({ state, detail }: InlineState): void {
    this.item.text = WORDS[state]();
    this.item.detail = detail;
    this.item.busy = state === "starting" || state === "asking";
    this.item.severity =
      state === "unavailable" ? vscode.LanguageStatusSeverity.Warning : vscode.LanguageStatusSeverity.Information;
    const title = state === "off" ? vscode.l10n.t("Switch on") : vscode.l10n.t("Switch off");
    this.item.command = { command: "codeagent.inline.toggle", title };
  }

  dispose(): void {
    this.item.dispose();
  }
}

const WORDS: Record<InlineState["state"], () => string> = {
  off: () => vscode.l10n.t("Completion is off"),
  starting: () => vscode.l10n.t("Completion starts"),
  ready: () => vscode.l10n.t("Completion is on"),
  asking: () => vscode.l10n.t("Completion is on"),
  unavailable: () => vscode.l10n.t("No completion"),
};
