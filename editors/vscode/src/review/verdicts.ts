/** What a decision about changes is called: of those that other programs made, which are in the files already, other words. */
import * as vscode from "vscode";
import type { Run } from "../state";

export interface Verdicts {
  readonly title: string;
  readonly acceptFile: string;
  readonly discardFile: string;
  readonly accept: string;
  readonly discard: string;
}

/** The words for the changes of a run. */
export function verdictsOf(run: Run | undefined): Verdicts {
  if (run?.foreign) {
    return {
      title: vscode.l10n.t("Changed outside"),
      acceptFile: vscode.l10n.t("$(check-all) Keep file"),
      discardFile: vscode.l10n.t("$(discard) Revert file"),
      accept: vscode.l10n.t("$(check) Keep change"),
      discard: vscode.l10n.t("$(discard) Revert change"),
    };
  }
  return {
    title: vscode.l10n.t("Agent's changes"),
    acceptFile: vscode.l10n.t("$(check-all) Accept file"),
    discardFile: vscode.l10n.t("$(discard) Discard file"),
    accept: vscode.l10n.t("$(check) Accept change"),
    discard: vscode.l10n.t("$(close) Discard change"),
  };
}
