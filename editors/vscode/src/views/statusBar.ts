/** The status bar item: idle, working with its step, waiting for the user, error. A click opens the menu. */
import * as vscode from "vscode";
import type { Agent, ServerState } from "../agent";
import { cachedPercent, condition, dollars, newest, position, type Run, type State, withChanges, working } from "../state";
import type { Store } from "../store";

const WIDTH = 48;

export class StatusBar implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem("codeagent.status", vscode.StatusBarAlignment.Left, 10);
  private readonly parts: vscode.Disposable[];

  constructor(
    private readonly agent: Agent,
    private readonly store: Store,
  ) {
    this.item.name = "CodeAgent";
    this.item.command = "codeagent.menu";
    this.parts = [store.onGlance(() => this.draw()), agent.onState(() => this.draw())];
    this.draw();
    this.item.show();
  }

  dispose(): void {
    this.item.dispose();
    for (const part of this.parts) part.dispose();
  }

  private draw(): void {
    const shown = face(this.store.state, this.agent.state);
    this.item.text = `$(${shown.icon}) ${shown.text}`;
    this.item.tooltip = shown.tooltip;
    this.item.accessibilityInformation = { label: shown.tooltip };
    this.item.backgroundColor = shown.background && new vscode.ThemeColor(`statusBarItem.${shown.background}Background`);
  }
}

interface Face {
  readonly icon: string;
  readonly text: string;
  readonly tooltip: string;
  readonly background?: "warning" | "error";
}

function face(state: State, server: ServerState): Face {
  const name = "CodeAgent";
  switch (condition(state)) {
    case "waiting": {
      const title = state.questions[0]?.title ?? "";
      return { icon: "bell-dot", text: vscode.l10n.t("{0}: waiting for you", name), tooltip: title, background: "warning" };
    }
    case "working": {
      const run = working(state);
      const at = run?.plan && position(run.plan);
      const doing = at ? `${at.number}/${at.of} ${at.title}` : run?.activity || vscode.l10n.t("working");
      const text = [cut(doing), spent(run)].filter(Boolean).join(" · ");
      return { icon: "sync~spin", text, tooltip: vscode.l10n.t("{0} works: {1}", name, run?.title ?? "") };
    }
  }
  if (server === "failed" || server === "absent") {
    return { icon: "error", text: name, tooltip: vscode.l10n.t("The agent's server is not running."), background: "error" };
  }
  if (server === "starting") return { icon: "loading~spin", text: name, tooltip: vscode.l10n.t("The agent's server starts.") };
  if (condition(state) === "error") {
    return { icon: "error", text: name, tooltip: newest(state)?.error ?? vscode.l10n.t("The last run failed.") };
  }
  const undecided = Object.keys(withChanges(state)?.staged ?? {}).length;
  if (undecided > 0) {
    const tooltip = vscode.l10n.t("{0} files to decide on", undecided);
    return { icon: "diff-multiple", text: `${name}: ${undecided}`, tooltip };
  }
  const tooltip = [vscode.l10n.t("{0} is ready", name), spent(newest(state))].filter(Boolean).join(" · ");
  return { icon: "sparkle", text: name, tooltip };
}

/** A cost with the share of the prompts that came from a cache, in whole percent; the cost alone for 0. */
export function withCached(cost: string, percent: number): string {
  return cost && percent > 0 ? vscode.l10n.t("{0} ({1} % cached)", cost, percent) : cost;
}

function spent(run: Run | undefined): string {
  return withCached(dollars(run), cachedPercent(run));
}

function cut(text: string): string {
  const line = text.replace(/\s+/g, " ").replaceAll("$(", "$ (");
  return line.length > WIDTH ? `${line.slice(0, WIDTH - 1)}…` : line;
}
