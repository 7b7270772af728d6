/** Questions about the state: how things stand, which run is meant, what one has cost. Pure. */
import type { Condition, Plan, Run, State } from "./model";

/** In one word how things stand. */
export function condition(state: State): Condition {
  if (state.questions.length > 0) return "waiting";
  if (working(state)) return "working";
  const last = newest(state);
  return last && (last.status === "failed" || last.status === "lost") ? "error" : "idle";
}

/** The newest run; here and below, attempts are parts of their run and none of their own. */
export function newest(state: State): Run | undefined {
  return lastWhere(state, () => true);
}

/** The newest run of the user's own that is at work. */
export function working(state: State): Run | undefined {
  return lastWhere(state, (run) => run.status === "running" && !run.beside);
}

/** The newest run whose changes wait for a decision. */
export function withChanges(state: State): Run | undefined {
  return lastWhere(state, (run) => Object.keys(run.staged).length > 0);
}

/** The newest run of which something can be undone. */
export function undoable(state: State): Run | undefined {
  return lastWhere(state, (run) => run.applied);
}

/** The attempts that are made for a run, by their numbers. */
export function attemptsOf(state: State, runId: string): readonly Run[] {
  const found = state.order.flatMap((id) => (state.runs[id]?.attemptOf === runId ? [state.runs[id]] : []));
  return found.sort((one, other) => (one.attempt ?? 0) - (other.attempt ?? 0));
}

/** Where a plan stands: number of the step at work or next (from 1), of all, and its title. */
export function position(plan: Plan): { number: number; of: number; title: string } | undefined {
  const running = plan.steps.findIndex((step) => step.state === "running");
  const index = running >= 0 ? running : plan.steps.findIndex((step) => step.state === "pending");
  const step = plan.steps[index];
  return step && { number: index + 1, of: plan.steps.length, title: step.title };
}

/** What a run has cost so far, for people; empty where no price is known. */
export function dollars(run: Run | undefined): string {
  const cost = run?.usage.cost ?? 0;
  if (cost < 0.0001) return "";
  return cost >= 0.1 ? `$${cost.toFixed(2)}` : `$${Number(cost.toPrecision(2))}`;
}

/** The share of a run's prompts that came from a cache, in whole percent; 0 where nothing is told of one. */
export function cachedPercent(run: Run | undefined): number {
  const { prompt = 0, cached = 0 } = run?.usage ?? {};
  return prompt > 0 && cached > 0 ? Math.floor((100 * Math.min(cached, prompt)) / prompt) : 0;
}

function lastWhere(state: State, holds: (run: Run) => boolean): Run | undefined {
  for (let index = state.order.length - 1; index >= 0; index--) {
    const run = state.runs[state.order[index] ?? ""];
    if (run && run.attemptOf === undefined && holds(run)) return run;
  }
  return undefined;
}
