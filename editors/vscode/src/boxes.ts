/** The input boxes of ours that are open: a question of the agent would take their place, and what was typed be lost. */
const open = new Set<PromiseLike<unknown>>();

/** The result of a box, which is open until there is one. */
export async function whileOpen<T>(box: PromiseLike<T>): Promise<T> {
  open.add(box);
  try {
    return await box;
  } finally {
    open.delete(box);
  }
}

/** Resolves when no box is open. */
export async function allClosed(): Promise<void> {
  while (open.size > 0) await Promise.allSettled(open);
}
