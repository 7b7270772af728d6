/** What the chat's webview and the extension tell each other. Types only; the host checks what it is told. */
import type { Picture } from "./model";
import type { Patch } from "./transcript";

export type { Picture } from "./model";

/** What the user works on in the editor, offered as part of a task. */
export interface Place {
  readonly uri: string;
  readonly label: string;
  readonly range?: { readonly start: Point; readonly end: Point } | undefined;
}

interface Point {
  readonly line: number;
  readonly character: number;
}

/** The pickers below the input, and how large the model's window is (0: not known). */
export interface Controls {
  readonly model: string;
  readonly mode: string;
  readonly effort: string;
  readonly window: number;
  /** Whether the user has said which model, or where one is. */
  readonly isSet: boolean;
}

/** What the user does with the steps of a plan that waits: never a whole list, which could be older than the plan. */
export type StepChange =
  | { readonly do: "up" | "down" | "drop"; readonly stepId: string }
  | { readonly do: "title"; readonly stepId: string; readonly title: string }
  | { readonly do: "add"; readonly title: string };

export interface SessionRow {
  readonly sessionId: string;
  readonly title: string;
  readonly modified: number;
  readonly excerpt?: string | undefined;
}

export interface Completion {
  readonly label: string;
  readonly words: string;
  readonly detail: string;
  readonly start: number;
}

/** How the server stands; `problem` says what went wrong, `log` is the end of what an installation prints. */
export interface ServerPage {
  readonly state: "starting" | "ready" | "stopped" | "failed" | "absent" | "installing";
  readonly problem?: string | undefined;
  readonly log?: string | undefined;
}

/** What the test of a provider found. */
export interface Tested {
  readonly ok: boolean;
  readonly words: string;
  readonly models: readonly string[];
}

export type Told =
  | { readonly type: "patches"; readonly patches: readonly Patch[] }
  | { readonly type: "copied" }
  | { readonly type: "unsent"; readonly text: string }
  | { readonly type: "sent"; readonly text: string }
  | { readonly type: "place"; readonly place: Place | undefined; readonly root: string }
  | { readonly type: "controls"; readonly controls: Controls }
  | { readonly type: "completion"; readonly id: number; readonly items: readonly Completion[] }
  | { readonly type: "sessions"; readonly rows: readonly SessionRow[]; readonly current: string; readonly open: boolean }
  | { readonly type: "server"; readonly server: ServerPage }
  | { readonly type: "setup"; readonly local: readonly { readonly name: string; readonly url: string }[] }
  | { readonly type: "tested"; readonly tested: Tested }
  | { readonly type: "download"; readonly percent: number | undefined; readonly words: string }
  | { readonly type: "words"; readonly text: string }
  | { readonly type: "pictures"; readonly pictures: readonly Picture[] }
  | { readonly type: "focus" };

export type Said =
  | { readonly type: "ready" | "stop" | "stopDownload" | "entered" | "left" }
  | { readonly type: "send"; readonly text: string; readonly how: "run" | "steer" | "queue"; readonly place?: Place | undefined; readonly again: string }
  | { readonly type: "mention"; readonly uris: readonly string[] }
  | { readonly type: "open"; readonly file: string; readonly line: number }
  | { readonly type: "copy" | "insert" | "applyCode" | "terminal"; readonly text: string; readonly language?: string }
  | { readonly type: "link"; readonly url: string }
  | { readonly type: "answer"; readonly requestId: string; readonly answer: string | readonly string[] }
  | { readonly type: "question"; readonly requestId: string }
  | { readonly type: "review" | "undo" | "applyAll" | "discardAll" | "prove" | "rewind" | "fork" | "withdraw" | "retry" | "show"; readonly runId: string }
  | { readonly type: "undoFile"; readonly runId: string; readonly path: string }
  | { readonly type: "attached"; readonly pictures: readonly Picture[] }
  | { readonly type: "file"; readonly runId: string; readonly path: string; readonly act: "open" | "apply" | "discard" }
  | { readonly type: "arrange"; readonly runId: string; readonly change: StepChange }
  | { readonly type: "step"; readonly runId: string; readonly stepId: string; readonly act: "show" | "retryStep" | "skipStep" | "rollback" }
  | { readonly type: "save"; readonly files: readonly string[] }
  | { readonly type: "complete"; readonly id: number; readonly text: string }
  | { readonly type: "sessions"; readonly query: string }
  | { readonly type: "resume" | "delete" | "export"; readonly sessionId: string; readonly title: string }
  | { readonly type: "command"; readonly name: string }
  | { readonly type: "setup"; readonly provider: string; readonly url: string; readonly model: string; readonly key: string };
