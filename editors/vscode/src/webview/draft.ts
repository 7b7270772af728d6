/** What the user writes in the composer. Pure. */

/** The draft with a text given back that was not sent, before what was written since. */
export function givenBack(text: string, draft: string): string {
  return draft.trim() ? `${text}\n${draft}` : text;
}
