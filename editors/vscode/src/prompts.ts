/**
 * Shows the agent's questions, one at a time, and sends the answers. Escape puts a question off: it stays in the
 * status bar, the tree and the transcript until it is answered or over.
 * Where the user is in the chat the question stands there, and no box comes over it, but for secrets.
 * While the user types, a question does not take the keyboard: a notification offers it instead. It comes after an input
 * box of ours, which would be closed by it. One that stands beside what the user does waits where it is listed.
 */
import * as vscode from "vscode";
import { allClosed } from "./boxes";
import type { AnyEvent, Question } from "./state";
import type { Store } from "./store";
import { unlinked } from "./words";

const TYPING_MS = 2000;

/** The question that has the screen. */
interface Shown {
  readonly requestId: string;
  readonly hide: () => void;
}

/** What answering needs of others. */
export interface Answering {
  respond(requestId: string, answer: string | readonly string[]): Promise<void>;
  review(runId: string): Promise<void>;
  /** Whether the user is at work in the chat. */
  inChat(): boolean;
}

export class Prompts implements vscode.Disposable {
  private shown: Shown | undefined;
  private readonly queue: Question[] = [];
  private readonly over = new Map<string, { promise: Promise<void>; resolve: () => void }>();
  private readonly secret = new Set<string>();
  private readonly details = new Details();
  private readonly parts: vscode.Disposable[];
  private lastTyped = 0;
  private waiting = false;

  constructor(
    private readonly store: Store,
    private readonly answering: Answering,
  ) {
    this.parts = [
      store.onEvent((event) => this.observe(event)),
      // Not the change of the text, which an accepted edit of the agent makes as well.
      vscode.window.onDidChangeTextEditorSelection(({ kind }) => {
        if (kind === vscode.TextEditorSelectionChangeKind.Keyboard) this.lastTyped = Date.now();
      }),
      vscode.workspace.registerTextDocumentContentProvider(Details.SCHEME, this.details),
    ];
  }

  /** Resolves when the open question with this title is over; undefined when there is none. */
  waitFor(title: string): Promise<void> | undefined {
    const found = this.store.state.questions.find((item) => oneLine(item.title).startsWith(title.replace(/…$/, "")));
    return found && this.ending(found.requestId);
  }

  /** Resolves when a question is over; `secret` ones are typed unseen. */
  async input(requestId: string, secret: boolean): Promise<void> {
    const question = this.store.state.questions.find((item) => item.requestId === requestId);
    if (secret) {
      this.secret.add(requestId);
      if (question && this.shown?.requestId !== requestId && !this.queue.includes(question)) this.queue.push(question);
      void this.next();
    }
    if (question) await this.ending(requestId);
  }

  /** Shows a question now: the one named, the only one, or one the user picks. */
  async show(requestId?: string): Promise<void> {
    const open = this.store.state.questions;
    const named = open.find((item) => item.requestId === requestId) ?? (open.length === 1 ? open[0] : undefined);
    const picks = open.map((question) => ({ label: oneLine(question.title), question }));
    const chosen = named ?? (await vscode.window.showQuickPick(picks, { title: vscode.l10n.t("Answer…") }))?.question;
    if (chosen) await this.present(chosen);
  }

  /** Gives an answer from wherever the user gave it; to review needs no answer, the question stays. */
  async answer(requestId: string, answer: readonly string[]): Promise<void> {
    const question = this.store.state.questions.find((item) => item.requestId === requestId);
    if (!question) return;
    if (question.aboutChanges && question.choices.length === 3 && answer[0] === question.choices[0]) {
      await this.answering.review(question.runId);
    } else {
      await this.answering.respond(question.requestId, answer.length === 1 ? (answer[0] ?? "") : answer);
    }
  }

  dispose(): void {
    this.shown?.hide();
    for (const part of this.parts) part.dispose();
  }

  private observe(event: AnyEvent): void {
    if (event.type === "approval_requested" || event.type === "question_asked") {
      const question = this.store.state.questions.find((item) => item.requestId === event.request_id);
      if (question && !event.beside) this.queue.push(question);
      void this.next();
    }
    if (event.type === "approval_resolved" || event.type === "question_answered") this.end(event.request_id);
    if (event.type === "local_gone") for (const requestId of [...this.over.keys()]) this.end(requestId);
    if (event.type === "local_gone") this.shown?.hide();
  }

  private end(requestId: string): void {
    this.over.get(requestId)?.resolve();
    this.over.delete(requestId);
    if (this.shown?.requestId === requestId) this.shown.hide();
  }

  private ending(requestId: string): Promise<void> {
    const known = this.over.get(requestId);
    if (known) return known.promise;
    let resolve: () => void = () => undefined;
    const promise = new Promise<void>((done) => (resolve = done));
    this.over.set(requestId, { promise, resolve });
    return promise;
  }

  /** Shows the question that is next once no box of ours is open; the end of each asks for the one after it. */
  private async next(): Promise<void> {
    if (this.waiting) return;
    this.waiting = true;
    await allClosed();
    this.waiting = false;
    while (!this.shown) {
      const question = this.queue.shift();
      if (!question) return;
      if (!this.isOpen(question) || this.isAskedInChat(question)) continue;
      if (Date.now() - this.lastTyped >= TYPING_MS) return this.present(question);
      void this.offer(question);
    }
  }

  private isAskedInChat({ requestId }: Question): boolean {
    return this.answering.inChat() && !this.secret.has(requestId);
  }

  private isOpen(question: Question): boolean {
    return this.store.state.questions.some((item) => item.requestId === question.requestId);
  }

  private async offer(question: Question): Promise<void> {
    const answer = vscode.l10n.t("Answer…");
    const chosen = await vscode.window.showInformationMessage(unlinked(oneLine(question.title)), answer);
    if (chosen === answer && this.isOpen(question)) await this.present(question);
  }

  private async present(question: Question): Promise<void> {
    this.shown?.hide();
    const answer = await (question.choices.length === 0 ? this.type(question) : this.choose(question));
    if (answer !== undefined) await this.answer(question.requestId, answer);
  }

  private leave(place: Shown): void {
    if (this.shown !== place) return;
    this.shown = undefined;
    void this.next();
  }

  private choose(question: Question): Promise<readonly string[] | undefined> {
    const box = vscode.window.createQuickPick();
    box.title = oneLine(question.title);
    box.placeholder = summary(question) || vscode.l10n.t("Escape answers later; the status bar keeps the question.");
    box.canSelectMany = question.multiple;
    box.ignoreFocusOut = true;
    box.items = question.choices.map((label) => ({ label }));
    if (question.detail) box.buttons = [{ iconPath: new vscode.ThemeIcon("open-preview"), tooltip: vscode.l10n.t("Show Details") }];
    box.onDidTriggerButton(() => void this.details.show(question));
    return this.ask(box, question, () => (question.multiple ? box.selectedItems : box.activeItems).map((item) => item.label));
  }

  private type(question: Question): Promise<readonly string[] | undefined> {
    const box = vscode.window.createInputBox();
    box.title = oneLine(question.title);
    box.prompt = unlinked(summary(question)) || vscode.l10n.t("Escape answers later; the status bar keeps the question.");
    box.password = this.secret.has(question.requestId);
    box.ignoreFocusOut = true;
    return this.ask(box, question, () => (box.value.trim() ? [box.value] : []));
  }

  private ask(
    box: vscode.QuickInput & { onDidAccept: vscode.Event<void> },
    question: Question,
    value: () => readonly string[],
  ): Promise<readonly string[] | undefined> {
    return new Promise((resolve) => {
      let answer: readonly string[] | undefined;
      const mine: Shown = { requestId: question.requestId, hide: () => box.hide() };
      this.shown = mine;
      box.onDidAccept(() => {
        answer = value();
        if (answer.length > 0) box.hide();
      });
      box.onDidHide(() => {
        box.dispose();
        resolve(answer?.length ? answer : undefined);
        this.leave(mine);
      });
      box.show();
    });
  }
}

/** The details of questions as read-only documents. */
class Details implements vscode.TextDocumentContentProvider {
  static readonly SCHEME = "codeagent-detail";
  private readonly texts = new Map<string, string>();

  async show(question: Question): Promise<void> {
    const name = question.detail.startsWith("--- ") ? "details.diff" : "details.txt";
    const uri = vscode.Uri.from({ scheme: Details.SCHEME, path: `/${name}`, query: question.requestId });
    this.texts.set(uri.toString(), question.detail);
    await vscode.window.showTextDocument(uri, { preview: true, preserveFocus: true });
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.toString()) ?? "";
  }
}

function oneLine(text: string): string {
  return text.split(/\s+/).join(" ").trim();
}

/** The first line of the details, if it says more than the title; a diff is not for reading in one line. */
function summary(question: Question): string {
  const line = (question.detail.trim().split("\n")[0] ?? "").slice(0, 200);
  return question.aboutChanges || oneLine(question.title).includes(line) ? "" : line;
}
