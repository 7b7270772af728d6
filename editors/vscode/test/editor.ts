/**
 * What the questions and the lenses use of the editor, for tests in place of the module `vscode`. As there, one box has the screen: a
 * second one closes it. Not here: anything drawn.
 */
type Listener<T> = (value: T) => unknown;

export class EventEmitter<T> {
  private readonly listeners: Listener<T>[] = [];
  readonly event = (listener: Listener<T>): { dispose(): void } => {
    this.listeners.push(listener);
    return { dispose: () => undefined };
  };
  fire(value: T): void {
    for (const listener of this.listeners) listener(value);
  }
  dispose(): void {
    this.listeners.length = 0;
  }
}

export class ThemeIcon {
  constructor(readonly id: string) {}
}

export class Range {
  readonly start: { line: number };
  constructor(line: number) {
    this.start = { line };
  }
}

export class CodeLens {
  constructor(
    readonly range: Range,
    readonly command?: { title: string; command: string; arguments?: unknown[] },
  ) {}
}

class Box {
  private readonly accepted = new EventEmitter<void>();
  private readonly hidden = new EventEmitter<void>();
  readonly onDidAccept = this.accepted.event;
  readonly onDidHide = this.hidden.event;
  readonly onDidTriggerButton = new EventEmitter<unknown>().event;
  title = "";
  value = "";
  items: readonly { label: string }[] = [];
  get activeItems(): readonly { label: string }[] {
    return this.items.slice(0, 1);
  }
  show(): void {
    screen.box?.hide();
    screen.box = this;
    screen.seen.push(this.title);
  }
  hide(): void {
    if (screen.box !== this) return;
    screen.box = undefined;
    this.hidden.fire();
  }
  accept(): void {
    this.accepted.fire();
  }
  dispose(): void {
    this.hide();
  }
}

/** The box that is open, and the titles of all that were, in order. */
export const screen: { box: Box | undefined; seen: string[] } = { box: undefined, seen: [] };

const nothing = { dispose: (): void => undefined };
export const window = {
  createQuickPick: (): Box => new Box(),
  createInputBox: (): Box => new Box(),
  onDidChangeTextEditorSelection: (): typeof nothing => nothing,
};
/** The commands that are registered. */
const known = new Map<string, (...args: unknown[]) => unknown>();
export const commands = {
  registerCommand: (name: string, run: (...args: unknown[]) => unknown): { dispose(): void } => {
    known.set(name, run);
    return { dispose: () => known.delete(name) };
  },
  executeCommand: async (name: string, ...args: unknown[]): Promise<unknown> => {
    const run = known.get(name);
    if (!run) throw new Error(`command '${name}' not found`);
    return run(...args);
  },
};
export const workspace = { registerTextDocumentContentProvider: (): typeof nothing => nothing };
export const l10n = { t: (words: string): string => words };
export const TextEditorSelectionChangeKind = { Keyboard: 1 };
