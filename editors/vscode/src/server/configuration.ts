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

/** One setting of the extension itself or of the server. */
export function own<T>(key: string, otherwise: T): T {
  return vscode.workspace.getConfiguration(SECTION).get<T>(key) ?? otherwise;
}
