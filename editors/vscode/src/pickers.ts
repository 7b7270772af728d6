/** Lists to pick from: the menu of the status bar, sessions, models, modes, tools, approvals, the doctor's report. */
import * as vscode from "vscode";
import type { Agent } from "./agent";
import { whileOpen } from "./boxes";
import { condition, undoable, withChanges, working } from "./state";
import type { Store } from "./store";
import type { Reports } from "./views/reports";
import type { Surroundings } from "./views/surroundings";

interface Choice extends vscode.QuickPickItem {
  readonly run?: () => unknown;
}

export class Pickers {
  constructor(
    private readonly agent: Agent,
    private readonly store: Store,
    private readonly reports: Reports,
    /** What is chosen now, and is to be shown as chosen. */
    private readonly chosen: Pick<Surroundings, "controls" | "chose">,
  ) {}

  /** The menu: what can be done now comes first. */
  async menu(): Promise<void> {
    const { state } = this.store;
    const now = condition(state);
    const item = (icon: string, label: string, command: string): Choice => ({
      label: `$(${icon}) ${label}`,
      run: () => vscode.commands.executeCommand(command),
    });
    const line = (label: string): Choice => ({ label, kind: vscode.QuickPickItemKind.Separator });
    await pick(vscode.l10n.t("CodeAgent"), [
      ...(now === "waiting" ? [item("bell-dot", vscode.l10n.t("Answer…"), "codeagent.pending")] : []),
      ...(working(state) ? [item("debug-stop", vscode.l10n.t("Stop"), "codeagent.cancel")] : []),
      ...(now === "working" || now === "waiting" ? [item("comment", vscode.l10n.t("Say Something to the Run…"), "codeagent.steer")] : []),
      ...(withChanges(state) ? [item("diff-multiple", vscode.l10n.t("Review Changes"), "codeagent.review")] : []),
      ...(undoable(state) ? [item("history", vscode.l10n.t("Undo Last Run"), "codeagent.undo")] : []),
      line(vscode.l10n.t("Work")),
      item("sparkle", vscode.l10n.t("New Task…"), "codeagent.run"),
      item("comment-discussion", vscode.l10n.t("Ask…"), "codeagent.ask"),
      item("output", vscode.l10n.t("Open the Chat"), "codeagent.chat.open"),
      line(vscode.l10n.t("Choose")),
      item("history", vscode.l10n.t("Sessions…"), "codeagent.session.list"),
      item("list-unordered", vscode.l10n.t("Runs…"), "codeagent.runs"),
      item("server", vscode.l10n.t("Choose Model…"), "codeagent.model.list"),
      item("shield", vscode.l10n.t("Choose Permission Mode…"), "codeagent.mode.set"),
      item("workspace-trusted", vscode.l10n.t("Trust This Workspace's Content…"), "codeagent.trust"),
      line(vscode.l10n.t("Server")),
      item("pulse", vscode.l10n.t("Doctor"), "codeagent.doctor"),
      item("output", vscode.l10n.t("Show Logs"), "codeagent.showLogs"),
      item("debug-restart", vscode.l10n.t("Restart Server"), "codeagent.restart"),
    ]);
  }

  async newSession(): Promise<void> {
    await this.agent.enter("codeagent.session.new");
  }

  /** How much the model thinks. */
  async effort(): Promise<void> {
    const rows: [string, string][] = [
      ["auto", vscode.l10n.t("What suits the model")],
      ["none", vscode.l10n.t("Answers at once")],
      ["low", vscode.l10n.t("Thinks a little")],
      ["medium", vscode.l10n.t("Thinks about it")],
      ["high", vscode.l10n.t("Thinks long; slower and dearer")],
    ];
    const set = (effort: string): unknown =>
      vscode.workspace.getConfiguration("codeagent").update("model.effort", effort === "auto" ? undefined : effort, vscode.ConfigurationTarget.Global);
    const { effort } = this.chosen.controls();
    await pick(vscode.l10n.t("Choose Effort…"), rows.map(([label, detail]) => ({ label: marked(label, effort), detail, run: () => set(label) })));
  }

  /** Opens a session as a document that can be saved. */
  async exportSession(sessionId?: string): Promise<void> {
    const content = await this.markdown(sessionId);
    if (content === undefined) return;
    const document = await vscode.workspace.openTextDocument({ content, language: "markdown" });
    await vscode.window.showTextDocument(document, { preview: true });
  }

  async models(): Promise<void> {
    const names = await busy(vscode.l10n.t("Asking the model server"), () => this.agent.call<string[]>("codeagent.model.list"));
    const type: Choice = { label: vscode.l10n.t("$(edit) Another name…"), run: () => this.typeModel() };
    const { model } = this.chosen.controls();
    const choose = (name: string): Choice => ({ label: marked(name, model), run: () => this.select(name) });
    await pick(vscode.l10n.t("Choose Model…"), [...(names ?? []).map(choose), type]);
  }

  async mode(given?: string): Promise<void> {
    const set = async (mode: string): Promise<void> => {
      if (await this.agent.call("codeagent.mode.set", { mode })) this.chosen.chose("mode", mode);
    };
    if (given !== undefined) return void (await set(given));
    const rows: [string, string][] = [
      ["ask", vscode.l10n.t("Asks before commands and shows all changes for review")],
      ["acceptEdits", vscode.l10n.t("Applies changes without asking, asks before commands")],
      ["readOnly", vscode.l10n.t("Reads and answers; changes and runs nothing")],
      ["bypass", vscode.l10n.t("Asks for nothing. Only where nothing can be lost")],
    ];
    const now = (await this.agent.call<{ mode: string }>("codeagent.mode.set", {}).catch(() => undefined))?.mode;
    const choice = ([mode, detail]: [string, string]): Choice => ({ label: marked(mode, now), detail, run: () => set(mode) });
    await pick(vscode.l10n.t("Choose Permission Mode…"), rows.map(choice));
  }

  async tools(): Promise<void> {
    interface Row { readonly name: string; readonly description: string; readonly state: string; readonly reason: string }
    const rows = (await this.agent.call<Row[]>("codeagent.tools.list")) ?? [];
    await pick(vscode.l10n.t("Tools…"), rows.map((row): Choice => {
      const on = row.state === "active";
      const verb = on ? "disable" : "enable";
      return {
        label: `$(${on ? "check" : "circle-slash"}) ${row.name}`,
        description: on ? "" : row.reason || row.state,
        detail: row.description.split("\n")[0] ?? "",
        run: () => this.agent.call(`codeagent.tools.${verb}`, { name: row.name }),
      };
    }));
  }

  async approvals(): Promise<void> {
    interface Row { readonly approvalId: string; readonly tool: string; readonly shown: string }
    const rows = (await this.agent.call<Row[]>("codeagent.approvals.list")) ?? [];
    if (rows.length === 0) return void vscode.window.showInformationMessage(vscode.l10n.t("Nothing is allowed or refused for good in this workspace."));
    await pick(vscode.l10n.t("Allowed or refused for good: choose one to be asked again"), rows.map((row): Choice => ({
      label: `$(trash) ${row.shown}`,
      description: row.tool,
      run: () => this.agent.call("codeagent.approvals.revoke", { approvalId: row.approvalId }),
    })));
  }

  /** Shows the report. */
  async doctor(): Promise<void> {
    interface Row { readonly name: string; readonly verdict: string; readonly detail: string; readonly advice: string }
    const rows = await busy(vscode.l10n.t("Looking at what works here"), () => this.agent.call<Row[]>("codeagent.doctor"));
    if (!rows) return;
    const mark: Record<string, string> = { ok: "✓", warning: "⚠", failed: "✕" };
    const lines = rows.map((row) => `${mark[row.verdict] ?? ""} **${row.name}**: ${row.detail}${row.advice ? `\n\n> ${row.advice}` : ""}\n`);
    const title = vscode.l10n.t("CodeAgent: Doctor");
    await this.reports.show(title, `# ${title}\n\n${lines.join("\n")}`);
  }

  private async markdown(sessionId: string | undefined): Promise<string | undefined> {
    const given = sessionId === undefined ? undefined : { sessionId };
    return (await this.agent.call<{ markdown: string }>("codeagent.session.export", given))?.markdown;
  }

  async forget(sessionId: string, title: string): Promise<void> {
    const yes = vscode.l10n.t("Delete");
    const chosen = await vscode.window.showWarningMessage(vscode.l10n.t("Delete the session “{0}”?", title), { modal: true }, yes);
    if (chosen !== yes) return;
    await this.agent.call("codeagent.session.delete", { sessionId });
    if (this.store.state.sessionId === sessionId) await this.newSession();
  }

  private async select(name: string): Promise<void> {
    if (await this.agent.call("codeagent.model.select", { name })) this.chosen.chose("model", name);
  }

  private async typeModel(): Promise<void> {
    const name = await whileOpen(vscode.window.showInputBox({ title: vscode.l10n.t("Name of the model") }));
    if (name?.trim()) await this.select(name.trim());
  }
}

/** The label of a choice, with a mark if it holds now. */
function marked(name: string, now: string | undefined): string {
  return name === now ? `$(check) ${name}` : name;
}

async function pick(title: string, items: readonly Choice[]): Promise<void> {
  const chosen = await vscode.window.showQuickPick(items, { title, matchOnDescription: true, matchOnDetail: true });
  await chosen?.run?.();
}

function busy<T>(title: string, work: () => Promise<T>): Thenable<T> {
  return vscode.window.withProgress({ location: vscode.ProgressLocation.Window, title }, work);
}
