/** Words of a server or a model in messages of the editor, which makes links of `[text](command:…)`. Pure. */

/** The words with every such link broken, so that they are nothing but words. */
export function unlinked(words: string): string {
  return words.replaceAll("](", "]\u200b(");
}
