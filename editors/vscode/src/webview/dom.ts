/** Small helpers for elements; text is always text, never HTML. */

export function element(tag: string, className: string, text?: string): HTMLElement {
  const made = document.createElement(tag);
  made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

/** The element with children. */
export function filled(tag: string, className: string, ...children: readonly (Node | string | undefined)[]): HTMLElement {
  const made = element(tag, className);
  made.append(...children.filter((child) => child !== undefined));
  return made;
}

/** A button whose click is told to the host as `data`. */
export function button(text: string, className: string, data: Readonly<Record<string, string>> = {}): HTMLButtonElement {
  const made = document.createElement("button");
  made.className = className;
  made.type = "button";
  made.textContent = text;
  Object.assign(made.dataset, data);
  return made;
}

/** A button that is only an icon; its name is told to readers of screens and shown on hover. */
export function iconButton(icon: string, label: string, data: Readonly<Record<string, string>> = {}): HTMLButtonElement {
  const made = button("", "icon", data);
  made.append(codicon(icon), element("span", "hidden", label));
  made.title = label;
  return made;
}

export function codicon(name: string): HTMLElement {
  const made = element("span", `codicon codicon-${name}`);
  made.setAttribute("aria-hidden", "true");
  return made;
}

/** A name that jumps to its file. */
export function fileButton(file: string, text: string): HTMLElement {
  const made = button(text, "file", { file });
  made.title = file;
  return made;
}

export function baseName(file: string): string {
  return file.split(/[\\/]/).at(-1) ?? file;
}
