/** Reads VS Code's configuration for `settings.ts` and the extension's own needs. */
import * as vscode from "vscode";
import { SECTION, SETTINGS } from "../protocol";
import { type Inspected, section } from "./settings";

/** The section for the server. */
export function serverSection(): Record<string, unknown> {
  const configuration = vscode.workspace.getConfiguration(SECTION);
  const found = SETTINGS.map(({ key, restricted }): Inspected => {
    const seen = configuration.inspect(key);
    return {
      key,
      restricted,
      global: seen?.globalValue,
      workspace: seen?.workspaceFolderValue ?? seen?.workspaceValue,
      effective: configuration.get(key),
    };
  });
  return section(found, vscode.workspace.isTrusted);
}

/** Switches inline completion off, or on as by default; where the workspace says something, there, else for the user. */
export async function toggleInline(): Promise<void> {
  const configuration = vscode.workspace.getConfiguration(SECTION);
  const seen = configuration.inspect("inline.enabled");
  const off = configuration.get("inline.enabled") === false;
  const workspace = seen?.workspaceValue !== undefined;
  await configuration.update("inline.enabled", off ? "auto" : false, workspace ? undefined : vscode.ConfigurationTarget.Global);
}

/** Whether the user has said which model; else the server uses what it finds on this machine. */
export function modelIsSet(): boolean {
  return own("model.provider", "auto") !== "auto" || own("model.baseUrl", "") !== "" || own("model.name", "") !== "";
}

/** One setting of the extension itself or of the server. */
export function own<T>(key: string, otherwise: T): T {
  return vscode.workspace.getConfiguration(SECTION).get<T>(key) ?? otherwise;
}
