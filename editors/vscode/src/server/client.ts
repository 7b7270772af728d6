/**
 * The language client: starts the server, restarts it when it falls, passes events and questions on.
 * Not here: what is shown of them.
 */
import * as vscode from "vscode";
import {
  type ClientCapabilities,
  CloseAction,
  type DynamicFeature,
  ErrorAction,
  type ErrorHandler,
  LanguageClient,
  type LanguageClientOptions,
  MessageType,
  ShowMessageNotification,
  ShowMessageRequest,
  State as ClientState,
  type StaticFeature,
} from "vscode-languageclient/node";
import { unlinked } from "../words";
import {
  DIAGNOSTICS_METHOD,
  EVENT_METHOD,
  EXPERIMENTAL_KEY,
  INLINE_STATUS_METHOD,
  INPUT_METHOD,
  LSP_METHOD,
  SECTION,
} from "../protocol";
import type { AnyEvent } from "../state";
import type { InlineState } from "../views/inlineStatus";
import { diagnosticsOf } from "./diagnostics";
import { serverSection } from "./configuration";
import type { Launch } from "./discover";
import { LanguageServers, type Question } from "./languageServers";
import type { Offered } from "./offered";

const NOTE_MS = 8000;
const CRASHES = 5;
const CRASH_WINDOW_MS = 180_000;

/** What the client asks of the rest of the extension. */
export interface Host {
  /** One event. */
  event(event: AnyEvent): void;
  /** Whether a prompt of the server is about a question that is shown here; resolves when it is over. */
  prompt(title: string): Promise<void> | undefined;
  /** A free text; resolves when the question is over. */
  input(requestId: string, secret: boolean): Promise<void>;
  /** Whether the user has a message of the server before them in another way. */
  isTold(message: string): boolean;
  /** Whether a document of the server is shown in another way here. */
  shows(uri: string): boolean;
  /** What a file shows of the lenses that the server offers for it. */
  lenses(document: vscode.TextDocument, found: readonly vscode.CodeLens[]): vscode.CodeLens[];
  /** Keeps what code actions and lenses run. */
  readonly offered: Offered;
  /** How inline completion stands. */
  inline(state: InlineState): void;
  /** Whether this client is still in use; the end of one that is not is no crash. */
  isWanted(): boolean;
  /** The server is there, or gone for good. */
  state(state: "starting" | "ready" | "stopped" | "failed"): void;
}

/** A client that leaves to the extension the commands, which ask for what they need first, and telling of failures. */
class Client extends LanguageClient {
  override registerFeature(feature: StaticFeature | DynamicFeature<unknown>): void {
    const method = "registrationType" in feature ? feature.registrationType.method : "";
    if (method !== "workspace/executeCommand") super.registerFeature(feature);
  }

  /** Logged only: the extension says itself what went wrong and what can be done. */
  override error(message: string, data?: unknown): void {
    super.error(message, data, false);
  }
}

export function makeClient(
  launch: Launch,
  key: string | undefined,
  channel: vscode.LogOutputChannel,
  host: Host,
): LanguageClient {
  const env = key === undefined ? process.env : { ...process.env, CODEAGENT_API_KEY: key };
  const server = { command: launch.command, args: [...launch.args], options: { env: { ...env, PYTHONUTF8: "1" } } };
  const client = new Client(SECTION, "CodeAgent", server, options(channel, host));
  client.registerFeature(announcement());
  client.onNotification(EVENT_METHOD, (event: AnyEvent) => host.event(event));
  client.onNotification(INLINE_STATUS_METHOD, (state: InlineState) => host.inline(state));
  client.onRequest(INPUT_METHOD, async (params: { requestId: string; secret?: boolean }) => {
    await host.input(params.requestId, params.secret === true);
    return null; // answered by `codeagent.respond`
  });
  client.onRequest(DIAGNOSTICS_METHOD, (params: { uri: string }) => diagnosticsOf(client, params.uri));
  const lent = new LanguageServers(client, {
    execute: vscode.commands.executeCommand,
    load: vscode.workspace.openTextDocument,
  });
  client.onRequest(LSP_METHOD, (question: Question) => lent.answer(question));
  client.onRequest(ShowMessageRequest.type, async (params) => {
    const shown = host.prompt(params.message);
    if (shown === undefined) return native(params);
    await shown;
    return null; // answered by `codeagent.respond`
  });
  client.onNotification(ShowMessageNotification.type, ({ type, message }) => {
    if (host.isTold(message)) return;
    if (type === MessageType.Error) void vscode.window.showErrorMessage(unlinked(message));
    else if (type === MessageType.Warning) void vscode.window.showWarningMessage(unlinked(message));
    else vscode.window.setStatusBarMessage(`$(sparkle) ${plain(message)}`, NOTE_MS);
  });
  client.onDidChangeState(({ newState }) => {
    if (newState === ClientState.Stopped) {
      host.event({ type: "local_gone" });
      host.inline({ state: "off", detail: "" });
    }
    host.state(newState === ClientState.Running ? "ready" : newState === ClientState.Starting ? "starting" : "stopped");
  });
  return client;
}

function options(channel: vscode.LogOutputChannel, host: Host): LanguageClientOptions {
  return {
    documentSelector: [{ scheme: "file" }, { scheme: "untitled" }],
    outputChannel: channel,
    initializationOptions: () => serverSection(),
    initializationFailedHandler: () => false,
    errorHandler: restarts(host),
    middleware: {
      provideCodeActions: async (document, range, context, token, next) =>
        host.offered.actions(await next(document, range, context, token)),
      provideCodeLenses: async (document, token, next) => {
        const found = host.lenses(document, (await next(document, token)) ?? []);
        for (const lens of found) if (lens.command) lens.command = host.offered.keep(lens.command);
        return found;
      },
      workspace: {
        configuration: (params) => params.items.map((item) => (item.section === SECTION ? serverSection() : null)),
      },
      window: {
        showDocument: async (params, _token, next) =>
          host.shows(params.uri) ? { success: true } : ((await next(params, _token)) as { success: boolean }),
      },
      // The status bar of the extension shows this.
      handleWorkDoneProgress: (token, params, next) => {
        if (!String(token).startsWith("codeagent-")) next(token, params);
      },
    },
  };
}

/** Without what Markdown and icons are written with: the status bar shows text as it is. */
function plain(message: string): string {
  return message.replaceAll(/\*\*|`/g, "").replaceAll("$(", "$ (");
}

/** Announces the custom messages. */
function announcement(): StaticFeature {
  return {
    fillClientCapabilities: (capabilities: ClientCapabilities) => {
      const ours = { event: true, input: true, diagnostics: true, lsp: true, inlineStatus: true, hunks: true };
      capabilities.experimental = { ...(capabilities.experimental as object), [EXPERIMENTAL_KEY]: ours };
    },
    initialize: () => undefined,
    getState: () => ({ kind: "static" }),
    clear: () => undefined,
  };
}

/** Restarts at once, and gives up when that does not help. */
function restarts(host: Host): ErrorHandler {
  const crashes: number[] = [];
  return {
    error: () => ({ action: ErrorAction.Continue, handled: true }),
    closed: () => {
      if (!host.isWanted()) return { action: CloseAction.DoNotRestart, handled: true };
      const now = Date.now();
      crashes.push(now);
      const recent = crashes.filter((time) => now - time < CRASH_WINDOW_MS).length;
      if (recent < CRASHES) return { action: CloseAction.Restart, handled: true };
      host.state("failed");
      return { action: CloseAction.DoNotRestart, handled: true };
    },
  };
}

/** A prompt that is not one of the agent's questions. */
async function native(params: { type: number; message: string; actions?: { title: string }[] }): Promise<{ title: string } | null> {
  const show = [
    vscode.window.showErrorMessage,
    vscode.window.showWarningMessage,
  ][params.type - 1] ?? vscode.window.showInformationMessage;
  return (await show(unlinked(params.message), ...(params.actions ?? []))) ?? null;
}
