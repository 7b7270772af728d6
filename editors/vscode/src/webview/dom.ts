/** Small helpers for elements; text is always text, never HTML. */

export function element(tag: string, className: string, text?: string): HTMLElement {
  const made = document.createElement(tag);
  made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

/** A button whose click is told to the host as `data`. */
export function button(text: string, className: string, data: Readonly<Record<string, string>>): HTMLElement {
  const made = element("button", className, text);
  made.setAttribute("type", "button");
  Object.assign(made.dataset, data);
  return made;
}

/** A name that jumps to its file. */
export function fileButton(file: string, text: string): HTMLElement {
  return button(text, "file", { file });
}
