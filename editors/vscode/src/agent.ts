/**
 * The server as the rest of the extension sees it: started when needed, asked by commands.
 * Not here: what is shown, what the server is asked for.
 */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import * as vscode from "vscode";
import { type LanguageClient, State as ClientState } from "vscode-languageclient/node";
import { type Host, makeClient } from "./server/client";
import { own } from "./server/configuration";
import { locate, offer } from "./server/locate";
import type { ApiKey } from "./server/key";
import type { Picture, Replayed } from "./state";
import { now, type Store } from "./store";

const STOP_MS = 2500;
const HANDOVER_MS = 60_000; // that a server of before may need to end, on a slow machine
const SESSION = "session"; // the name of a file in the folder that the editor keeps for the workspace
const NOT_OURS = "NOT_FOUND"; // the code of a session that is gone or open in another window

interface Started {
  readonly runId: string;
  readonly sessionId: string;
  readonly queued?: boolean;
}

export type ServerState = "starting" | "ready" | "stopped" | "failed" | "absent";

export class Agent implements vscode.Disposable {
  private client: LanguageClient | undefined;
  private starting: Promise<boolean> | undefined;
  /** The setting by which the server was started. */
  private setting = "";
  /** The server knows the last session again. */
  private resumed: Promise<void> = Promise.resolve();
  /** The user is in the session that was chosen last. */
  private entered: Promise<unknown> = Promise.resolve();
  private readonly changed = new vscode.EventEmitter<ServerState>();
  readonly onState = this.changed.event;
  state: ServerState = "stopped";
  /** Why there is no server, as far as it is known. */
  problem: string | undefined;

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly channel: vscode.LogOutputChannel,
    private readonly key: ApiKey,
    private readonly store: Store,
    private readonly host: Omit<Host, "state" | "isWanted">,
  ) {}

  /** Starts the server unless it runs; false when there is none. `quiet` offers nothing. */
  async start(how: { quiet: boolean }): Promise<boolean> {
    if (this.client?.state === ClientState.Running) return true;
    this.starting ??= this.launch(how).finally(() => (this.starting = undefined));
    return this.starting;
  }

  async restart(how: { quiet: boolean } = { quiet: false }): Promise<void> {
    await this.starting; // one that only begins cannot be stopped
    await this.stop();
    await this.start(how);
  }

  async stop(): Promise<void> {
    const client = this.client;
    this.client = undefined; // from now on its end is no crash
    if (client?.needsStop()) await client.stop(STOP_MS).catch(() => undefined);
    await client?.dispose().catch(() => undefined);
  }

  /** The answer of a command of the server; undefined when there is no server. Throws what the server refuses. */
  async call<T>(command: string, argument?: object): Promise<T | undefined> {
    if (!(await this.start({ quiet: false }))) return undefined;
    await this.resumed;
    return this.send<T>(command, argument);
  }

  /** Starts a run, or has it wait, and makes it known under `title`; false when there is no server. */
  async run(command: string, argument: object, title: string): Promise<boolean> {
    await this.entered;
    const started = await this.begin(command, argument, this.store.state.sessionId);
    if (!started) return false;
    const { runId, sessionId, queued } = started;
    const { attachments } = argument as { attachments?: readonly Picture[] };
    if (attachments) this.store.dispatch({ type: "local_pictures", run_id: runId, pictures: attachments });
    // Of one that is queued the server tells when it begins.
    this.store.dispatch({ type: queued ? "local_queued" : "local_request", run_id: runId, session_id: sessionId, title, ts: now() });
    await this.remember(sessionId);
    return true;
  }

  /** The answer of a command that needs nothing of the user. The session in which it starts a run is the user's. */
  async pass(command: string, startsRun: boolean, argument?: object): Promise<unknown> {
    const answer = await this.call<Partial<Started>>(command, argument);
    if (startsRun && answer?.sessionId) this.store.dispatch({ type: "local_session", session_id: answer.sessionId });
    return answer;
  }

  /** A run in the session, or in a new one where another window has that. */
  private async begin(command: string, argument: object, session: string | undefined): Promise<Started | undefined> {
    const given = session ? { ...argument, sessionId: session } : argument;
    try {
      return await this.call<Started>(command, given);
    } catch (error) {
      const { data, message } = error as { data?: { code?: string }; message?: string };
      if (data?.code !== NOT_OURS) throw error;
      this.channel.info(`Session ${session ?? ""} is not to be had: ${message}`);
      await this.moveTo("codeagent.session.new");
      return this.call<Started>(command, { ...argument, sessionId: this.store.state.sessionId });
    }
  }

  /** Goes on with the session that a command makes or resumes, as do runs that are asked for meanwhile; false without one. */
  async enter(command: string, argument?: object): Promise<boolean> {
    const entering = this.moveTo(command, argument);
    this.entered = entering.catch(() => undefined);
    return entering;
  }

  private async moveTo(command: string, argument?: object): Promise<boolean> {
    const sessionId = (await this.call<{ sessionId: string }>(command, argument))?.sessionId;
    if (sessionId === undefined) return false;
    this.store.dispatch({ type: "local_clear" });
    this.store.dispatch({ type: "local_session", session_id: sessionId });
    await this.replay(sessionId);
    await this.remember(sessionId);
    return true;
  }

  /** Shows again what was said and done in a session. */
  private async replay(sessionId: string): Promise<void> {
    try {
      const shown = await this.send<{ events: readonly Replayed[] }>("codeagent.session.events", { sessionId });
      if (shown) this.store.dispatch({ type: "local_replayed", session_id: sessionId, events: shown.events });
    } catch (error) {
      this.channel.warn(`The session ${sessionId} is not shown: ${String(error)}`); // it can be gone on with all the same
    }
  }

  /** The session to go on with after a restart; undefined forgets it. */
  private async remember(sessionId: string | undefined): Promise<void> {
    await this.kept(sessionId ?? "");
  }

  /** What is remembered, after it was changed: in a file, as the editor writes its own store down late, or never at a crash. */
  private async kept(value?: string): Promise<string> {
    const folder = this.context.storageUri;
    if (!folder) return "";
    const file = join(folder.fsPath, SESSION);
    try {
      if (value === undefined) return await readFile(file, "utf8");
      await mkdir(folder.fsPath, { recursive: true });
      await writeFile(file, value);
      return value;
    } catch (error) {
      if (value !== undefined) this.channel.warn(`The session cannot be kept: ${String(error)}`);
      return ""; // nothing is remembered yet
    }
  }

  /** Tells the server that settings, or the trust in the workspace, have changed. */
  settingsChanged(): void {
    if (this.client?.state !== ClientState.Running) return;
    void this.client.sendNotification("workspace/didChangeConfiguration", { settings: {} });
  }

  dispose(): void {
    void this.stop();
    this.changed.dispose();
  }

  private async launch(how: { quiet: boolean }): Promise<boolean> {
    this.setting = serverSetting();
    const found = await locate(this.context);
    if (!found) {
      this.to("absent");
      if (!how.quiet && own<string>("server.install", "ask") !== "never") void this.askForOne();
      return false;
    }
    this.channel.info(`Starting ${found.command} ${found.args.join(" ")} (${found.source})`);
    await this.stop();
    this.problem = undefined;
    const client: LanguageClient = makeClient(found, await this.key.get(), this.channel, {
      ...this.host,
      state: (to) => this.to(to),
      isWanted: () => this.client === client,
    });
    this.client = client;
    try {
      await client.start();
    } catch (error) {
      this.problem = error instanceof Error ? error.message : String(error);
      this.to("failed");
      this.channel.error(error instanceof Error ? error : String(error));
      void this.tellFailure(found.command);
      return false;
    }
    return true;
  }

  /** Nobody waits for this: the message may stay open while the user solves it in another way. */
  private async askForOne(): Promise<void> {
    if ((await offer(this.context)) && this.state !== "ready") await this.restart();
  }

  private async tellFailure(command: string): Promise<void> {
    const logs = vscode.l10n.t("Show Logs");
    const other = vscode.l10n.t("Install or Choose the Server…");
    const words = vscode.l10n.t("The agent's server did not start: {0}", command);
    const chosen = await vscode.window.showErrorMessage(words, logs, other);
    if (chosen === logs) this.channel.show();
    if (chosen === other && (await offer(this.context))) await this.restart();
  }

  private async send<T>(command: string, argument?: object): Promise<T | undefined> {
    const params = { command, arguments: argument === undefined ? [] : [argument] };
    return (await this.client?.sendRequest("workspace/executeCommand", params)) as T | undefined;
  }

  private to(state: ServerState): void {
    const returned = state === "ready";
    this.state = state;
    void vscode.commands.executeCommand("setContext", "codeagent.ready", returned);
    this.changed.fire(state);
    if (returned) this.resumed = this.goOn();
  }

  /** After a start, the server knows the last session again. */
  private async goOn(): Promise<void> {
    // Also where it was tried before, and the server of then had to be started again.
    const sessionId = this.store.state.sessionId || (await this.kept());
    if (!sessionId) return;
    if ((await this.takeUp(sessionId)) === "elsewhere") void this.takeUpLater(sessionId);
  }

  /** Goes on with a session that is there, not elsewhere, and not gone. Without it the next run begins a new one. */
  private async takeUp(sessionId: string): Promise<"here" | "elsewhere" | "gone"> {
    try {
      await this.send("codeagent.session.resume", { sessionId });
    } catch (error) {
      this.store.dispatch({ type: "local_session", session_id: "" });
      if ((error as { data?: { code?: string } }).data?.code === NOT_OURS) return "elsewhere";
      await this.remember(undefined);
      return "gone";
    }
    this.store.dispatch({ type: "local_session", session_id: sessionId });
    await this.replay(sessionId);
    return "here";
  }

  /** Tries again for a while: after a reload the server of before may still be ending. Not once the user has begun anew. */
  private async takeUpLater(sessionId: string): Promise<void> {
    const { client } = this;
    for (const until = Date.now() + HANDOVER_MS; Date.now() < until;) {
      await new Promise((resolve) => setTimeout(resolve, HANDOVER_MS / 60));
      if (this.client !== client || this.store.state.sessionId) return;
      // After a reload the user's settings may come when the server has been started by none: then it is another one.
      if (this.setting !== serverSetting()) return this.restart({ quiet: true });
      if ((await this.takeUp(sessionId)) !== "elsewhere") return;
    }
    await this.remember(undefined); // it is gone, or another window has it
  }
}

function serverSetting(): string {
  return JSON.stringify(own<string[]>("server.command", []));
}
