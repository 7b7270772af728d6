/** The API key: kept by the editor's secret storage, given to the server by its environment alone. */
import * as vscode from "vscode";
import { whileOpen } from "../boxes";

const NAME = "codeagent.apiKey";

export class ApiKey {
  constructor(private readonly secrets: vscode.SecretStorage) {}

  async get(): Promise<string | undefined> {
    return this.secrets.get(NAME);
  }

  /** Asks for a key and keeps it; false when the user gave none. */
  async ask(): Promise<boolean> {
    const box = vscode.window.showInputBox({
      title: vscode.l10n.t("API key of the model server"),
      prompt: vscode.l10n.t("Kept in the editor's secret storage; it is in no settings and no command line."),
      password: true,
      ignoreFocusOut: true,
    });
    const value = await whileOpen(box);
    if (!value) return false;
    await this.keep(value);
    return true;
  }

  async keep(value: string): Promise<void> {
    await this.secrets.store(NAME, value.trim());
  }

  async forget(): Promise<void> {
    await this.secrets.delete(NAME);
  }
}
