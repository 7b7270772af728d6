/** The words that the transcript's webview shows, in the user's language. */
import { l10n } from "vscode";

export interface Words extends Readonly<Record<string, string>> {}

export function words(): Words {
  return {
    empty: l10n.t("Say what you want below, or select code and use the lightbulb."),
    placeholder: l10n.t("Task or question…"),
    send: l10n.t("Send"),
    stop: l10n.t("Stop"),
    copy: l10n.t("Copy"),
    copied: l10n.t("Copied"),
    run: l10n.t("Run"),
    attempt: l10n.t("Attempt {0}"),
    review: l10n.t("Review"),
    undo: l10n.t("Undo"),
    answer: l10n.t("Answer…"),
    answered: l10n.t("Answered: {0}"),
    unanswered: l10n.t("No longer open"),
    proposed: l10n.t("Proposed: {0} files, +{1} −{2}"),
    proposedOne: l10n.t("Proposed: +{1} −{2}"),
    applied: l10n.t("Accepted: {0}"),
    partly: l10n.t("Accepted in part: {0}"),
    notApplied: l10n.t("Not applied: {0}"),
    undone: l10n.t("Undone: {0}"),
    discarded: l10n.t("Discarded: {0}"),
    compacted: l10n.t("Older turns were summarised ({0} → {1} tokens)."),
    exit: l10n.t("Exit code {0}, {1} s"),
    completed: l10n.t("Done"),
    failed: l10n.t("Failed"),
    cancelled: l10n.t("Stopped by you"),
    stopped: l10n.t("Stopped"),
    rejected: l10n.t("Not accepted"),
    waiting: l10n.t("Waits for your answer"),
    lost: l10n.t("Lost with the server"),
    working: l10n.t("working"),
  };
}
