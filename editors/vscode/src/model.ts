/**
 * What is known of all runs, as types. Not here: how events change it (`state.ts`), questions about it (`select.ts`).
 */
import type { ServerEvent } from "./protocol";

export type RunStatus = "running" | "completed" | "failed" | "cancelled" | "stopped" | "rejected" | "waiting" | "lost";
export type StepState = "pending" | "running" | "completed" | "failed" | "skipped" | "cancelled";

/** A staged change of one file; `base` is null for a file to be created, `text` for one to be deleted. */
export interface FileState {
  readonly path: string;
  readonly base: string | null;
  readonly text: string | null;
  readonly movedFrom?: string | undefined;
}

export interface Step {
  readonly stepId: string;
  readonly title: string;
  readonly description: string;
  readonly state: StepState;
  readonly error?: string | undefined;
}

export interface Plan {
  readonly goal: string;
  readonly state: "proposed" | "approved" | "rejected" | "running" | "completed" | "failed" | "cancelled";
  readonly steps: readonly Step[];
}

/** One piece of a transcript. */
export type Block =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "output"; readonly text: string }
  /** What the model thinks before it answers; gone with the window, as it is not kept. */
  | { readonly kind: "thought"; readonly text: string }
  | ToolCard
  | { readonly kind: "note" | "command"; readonly text: string }
  | { readonly kind: "error"; readonly text: string; readonly code?: string | undefined }
  | { readonly kind: "compacted"; readonly before: number; readonly after: number }
  | { readonly kind: "plan" }
  | { readonly kind: "step"; readonly stepId: string; readonly text: string }
  | { readonly kind: "exit"; readonly exitCode: number; readonly duration: number }
  | {
      readonly kind: "question";
      readonly requestId: string;
      readonly title: string;
      readonly detail: string;
      readonly choices: readonly string[];
      readonly approval: boolean;
      readonly aboutChanges: boolean;
      /** The model asks: the answer may be written where the question stands. Others may ask for secrets. */
      readonly byAgent: boolean;
      readonly multiple: boolean;
      readonly open: boolean;
      readonly answer?: string | undefined;
    }
  | { readonly kind: "changes"; readonly files: readonly string[]; readonly added: number; readonly removed: number; readonly foreign?: boolean; readonly proof?: readonly string[] }
  | {
      readonly kind: "applied";
      readonly files: readonly string[];
      readonly outcome: string;
      readonly conflicts: readonly string[];
      readonly undo: boolean;
      readonly reason?: string | undefined;
      /** About changes of other programs. */
      readonly verdict?: "kept" | "reverted" | undefined;
    }
  /** What the user said to the run while it worked; the model does not have it yet while it is pending. */
  | { readonly kind: "said"; readonly text: string; readonly itemId: string; readonly pending: boolean }
  | { readonly kind: "discarded"; readonly files: readonly string[]; readonly partly?: boolean }
  | { readonly kind: "ended"; readonly status: RunStatus; readonly summary: string; readonly error?: string | undefined; readonly code?: string | undefined };

/** What a call of a tool is shown as. */
export type CardKind = "edit" | "command" | "search" | "read" | "tests" | "todo" | "plan" | "ask" | "other";

/** A call of a tool, from when it is asked for to its result. */
export interface ToolCard {
  readonly kind: "tool";
  readonly callId: string;
  readonly name: string;
  readonly card: CardKind;
  readonly subject: string;
  readonly state: "running" | "done" | "failed";
  /** The end of what it has printed, then what it gave; cut. */
  readonly output: string;
  /** What an edit does: lines that begin with a blank, `+`, `-` or `@`. */
  readonly diff?: readonly string[] | undefined;
  readonly added?: number | undefined;
  readonly removed?: number | undefined;
  readonly summary?: string | undefined;
  readonly error?: string | undefined;
  readonly ms?: number | undefined;
}

export interface Todo {
  readonly id: string;
  readonly content: string;
  readonly status: string;
}

/** Tokens; `cost` in US dollars, absent where no price is known. */
export interface Usage {
  readonly prompt: number;
  readonly cached: number;
  readonly completion: number;
  readonly cost?: number;
  /** What a prompt consists of, by kind. */
  readonly context?: Readonly<Record<string, number>> | undefined;
}

/** A picture that goes along with a task: its bytes in base64. */
export interface Picture {
  readonly name: string;
  readonly data: string;
}

export interface Run {
  readonly runId: string;
  readonly sessionId: string;
  readonly title: string;
  /** The user's words, where they are more than the title. */
  readonly task?: string | undefined;
  /** Seconds since the epoch: its first event, its last. */
  readonly began?: number | undefined;
  readonly over?: number | undefined;
  /** What a rewind took back of it. */
  readonly rewound?: "changes" | "talk" | "both" | undefined;
  readonly todos: readonly Todo[];
  /** The run for which it is one of several attempts. */
  readonly attemptOf?: string | undefined;
  /** Which of them it is, from 1. */
  readonly attempt?: number | undefined;
  /** It is not the user's own and hears nothing, such as that of another agent. */
  readonly beside?: boolean | undefined;
  /** Its changes are those of other programs, in the files already: they are kept or reverted. */
  readonly foreign?: boolean | undefined;
  /** Only its words are known: the session began with them, as a fork of another. */
  readonly earlier?: boolean | undefined;
  readonly mode: "direct" | "plan";
  readonly status: RunStatus;
  /** What it does now, in a few words. */
  readonly activity: string;
  readonly blocks: readonly Block[];
  /** Changes that wait for a decision, by path. */
  readonly staged: Readonly<Record<string, FileState>>;
  readonly plan?: Plan | undefined;
  readonly usage: Usage;
  /** The last call of the model: what fills its window. */
  readonly last?: Usage | undefined;
  readonly outcome?: string | undefined;
  readonly error?: string | undefined;
  /** What was tried on its changes, in sentences. */
  readonly proof: readonly string[];
  /** Whether what was tried is all well: false where tests are red, undefined where none ran. */
  readonly proven?: boolean | undefined;
  /** The title of the question about its changes. */
  readonly proposal?: string | undefined;
  /** Whether something of it is in the files and can be undone. */
  readonly applied: boolean;
  /** The files in which it is, and can be undone. */
  readonly inFiles: readonly string[];
}

export interface Question {
  readonly requestId: string;
  readonly runId: string;
  readonly title: string;
  readonly detail: string;
  readonly choices: readonly string[];
  readonly approval: boolean;
  /** It asks about the changes of its run. */
  readonly aboutChanges: boolean;
  /** Several choices may be taken. */
  readonly multiple: boolean;
}

export interface State {
  readonly runs: Readonly<Record<string, Run>>;
  /** Run ids, oldest first. */
  readonly order: readonly string[];
  /** The open ones, oldest first. */
  readonly questions: readonly Question[];
  /** The session in which the user works; attempts and runs of earlier sessions may be at work in others. */
  readonly sessionId?: string | undefined;
  /** Titles of runs that have not begun. */
  readonly queued: Readonly<Record<string, string>>;
  /** The pictures that the user sent along in this window, by run. */
  readonly pictures: Readonly<Record<string, readonly Picture[]>>;
  /** What each rewind took back, by its run. */
  readonly gone: Readonly<Record<string, readonly string[]>>;
  /** The run that the user chose in the tree: an attempt is in the transcript only then. */
  readonly shown?: string | undefined;
}

/** What this editor knows of itself: what the user asked for, a restored change, the end of the server. */
export type LocalEvent =
  | { readonly type: "local_pictures"; readonly run_id: string; readonly pictures: readonly Picture[] }
  | { readonly type: "local_request"; readonly run_id: string; readonly session_id: string; readonly title: string; readonly ts: number }
  | { readonly type: "local_queued"; readonly run_id: string; readonly session_id: string; readonly title: string }
  | { readonly type: "local_shown"; readonly run_id: string }
  | { readonly type: "local_gone" }
  | { readonly type: "local_session"; readonly session_id: string }
  | { readonly type: "local_restored"; readonly run_id: string; readonly session_id: string; readonly title: string; readonly files: readonly FileState[]; readonly added: number; readonly removed: number }
  | { readonly type: "local_said"; readonly run_id: string; readonly session_id: string; readonly text: string; readonly item_id: string }
  | { readonly type: "local_replayed"; readonly session_id: string; readonly events: readonly Replayed[] }
  | { readonly type: "local_withdrawn"; readonly run_id: string }
  | { readonly type: "local_undecided"; readonly runs: readonly string[] }
  | { readonly type: "local_clear" };

/** An event of the session that is shown again; a run begins with the user's words. */
export type Replayed =
  | ServerEvent
  | { readonly type: "run_started"; readonly run_id: string; readonly session_id: string; readonly seq: number; readonly ts: number; readonly task: string; readonly title: string; readonly earlier?: boolean };

export type AnyEvent = ServerEvent | LocalEvent;

/** What a user sees of everything in one word. */
export type Condition = "waiting" | "working" | "error" | "idle";
