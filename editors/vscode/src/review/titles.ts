/** The titles of reviews, by which their tabs are told apart: an editor does not say what a tab with many files shows. */
import type { Run } from "../model";

const SHORT = 40;

/** What a run is about, in a few words beside others. */
export function shortTitle(run: Run | undefined): string {
  const words = (run?.title || run?.task || "").replaceAll(/\s+/g, " ").trim();
  return words.length <= SHORT ? words : `${words.slice(0, SHORT - 1)}…`;
}

/** The title for a run's review: another one if a different run has it already. */
export function ownTitle(title: string, runId: string, titles: ReadonlyMap<string, string>): string {
  const taken = new Set([...titles].flatMap(([id, other]) => (id === runId ? [] : [other])));
  for (let number = 2, own = title; ; number++) {
    if (!taken.has(own)) return own;
    own = `${title} (${number})`;
  }
}

/** The run whose review has a tab with this label, which begins with its title. */
export function titledRun(label: string, titles: ReadonlyMap<string, string>): string | undefined {
  const fits = [...titles].filter(([, title]) => label.startsWith(title));
  return fits.sort(([, first], [, second]) => second.length - first.length)[0]?.[0];
}
