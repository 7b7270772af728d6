/**
 * Commands of code actions and lenses that outlive the list in which they were offered.
 *
 * VS Code keeps the arguments of an offered command only as long as the list: one that is renewed while its menu is open
 * (an agent that works renews them often) leaves an entry behind that fails with "Actual command not found", no box
 * opens, and what is typed next replaces the selection. A command without arguments is run as it is, so each offer gets
 * one of a ring of such commands, and its arguments are kept here. Not here: what is offered.
 */
import * as vscode from "vscode";

const PLACES = 256; // more than a screen of lenses and some lists of actions

export class Offered implements vscode.Disposable {
  private readonly commands: (vscode.Command | undefined)[] = [];
  private readonly registrations: vscode.Disposable[];
  private next = 0;

  constructor(private readonly prefix = "codeagent.offered") {
    this.registrations = Array.from({ length: PLACES }, (_, place) =>
      vscode.commands.registerCommand(`${prefix}.${place}`, () => this.run(place)),
    );
  }

  /** The same command without arguments; one that has none is left as it is. */
  keep(command: vscode.Command): vscode.Command {
    if (!command.arguments?.length) return command;
    const known = this.commands.findIndex((kept) => same(kept, command)); // renewed lists offer mostly the same
    const place = known >= 0 ? known : this.next;
    if (known < 0) this.next = (this.next + 1) % PLACES;
    this.commands[place] = command;
    const { title, tooltip } = command;
    return { title, command: `${this.prefix}.${place}`, ...(tooltip === undefined ? {} : { tooltip }) };
  }

  /** The actions with such commands. */
  actions<T extends vscode.CodeAction | vscode.Command>(found: readonly T[] | null | undefined): T[] | null | undefined {
    return found?.map((item) => {
      if (typeof item.command === "string") return this.keep(item as vscode.Command) as T;
      if (item.command) (item as vscode.CodeAction).command = this.keep(item.command);
      return item;
    });
  }

  dispose(): void {
    for (const registration of this.registrations) registration.dispose();
  }

  private run(place: number): Thenable<unknown> | undefined {
    const kept = this.commands[place];
    return kept && vscode.commands.executeCommand(kept.command, ...(kept.arguments ?? []));
  }
}

function same(one: vscode.Command | undefined, other: vscode.Command): boolean {
  return one?.command === other.command && JSON.stringify(one.arguments) === JSON.stringify(other.arguments);
}
