/**
 * Holds the state: events go in, listeners hear of the new state, at most once in `PAUSE_MS` or `GLANCE_MS`.
 * Not here: what events mean (`state.ts`).
 */
import * as vscode from "vscode";
import { type AnyEvent, INITIAL, reduce, type State } from "./state";

const PAUSE_MS = 40;
const GLANCE_MS = 250;

/** The time as events have it: seconds since the epoch. */
export function now(): number {
  return Date.now() / 1000;
}

export class Store implements vscode.Disposable {
  private current: State = INITIAL;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private glance: ReturnType<typeof setTimeout> | undefined;
  private glanced = 0;
  private readonly changed = new vscode.EventEmitter<State>();
  private readonly seen = new vscode.EventEmitter<State>();
  private readonly happened = new vscode.EventEmitter<AnyEvent>();

  /** The state has changed; many events may have led to it. */
  readonly onChange = this.changed.event;
  /** The same, for what is expensive to draw and only glanced at; at once after a pause. */
  readonly onGlance = this.seen.event;
  /** Every event, after the state knows of it. */
  readonly onEvent = this.happened.event;

  get state(): State {
    return this.current;
  }

  dispatch(event: AnyEvent): void {
    const before = this.current;
    this.current = reduce(before, event);
    this.happened.fire(event);
    if (this.current !== before) this.timer ??= setTimeout(() => this.tell(), PAUSE_MS);
  }

  dispose(): void {
    clearTimeout(this.timer);
    clearTimeout(this.glance);
    this.changed.dispose();
    this.seen.dispose();
    this.happened.dispose();
  }

  private tell(): void {
    this.timer = undefined;
    this.changed.fire(this.current);
    this.glance ??= setTimeout(() => this.show(), Math.max(0, this.glanced + GLANCE_MS - Date.now()));
  }

  private show(): void {
    this.glance = undefined;
    this.glanced = Date.now();
    this.seen.fire(this.current);
  }
}
