"""The command line `codeagent-lsp`: parses arguments, calls one function. Subcommands import their own parts late."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from io import TextIOWrapper
from typing import TYPE_CHECKING

from codeagent_lsp import __version__

if TYPE_CHECKING:
    from codeagent_lsp.server.server import CodeAgentServer

EXIT_USAGE = 2
EXIT_INTERRUPTED = 130
EXIT_UNREAD = 141  # as a shell reports a program that SIGPIPE has ended
LOG_LEVELS = ("debug", "info", "warning", "error")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand and return its exit code; without one, serve a client on standard input and output. An OSError
    is printed and gives 2, Ctrl-C 130. Wrong arguments raise SystemExit, as with argparse.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    # Editors start the program without a subcommand, and some add `--stdio`.
    if not arguments or (arguments[0].startswith("--") and arguments[0] not in ("--help", "--version")):
        arguments.insert(0, "serve")
        if len(arguments) == 1:
            _tell_what_this_is("cli.bare")
    options = _parser().parse_args(arguments)
    if sys.platform == "win32":
        _speak_utf8()
    try:
        code: int = options.run(options)
        if sys.stdout is not None and not sys.stdout.closed:  # a server has closed what it wrote to
            sys.stdout.flush()
    except KeyboardInterrupt:
        code = EXIT_INTERRUPTED
    except BrokenPipeError:
        # Who reads the output has seen enough, as `head` has. What is still in the buffer has nowhere to go: without
        # this, Python would try to write it at the exit and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = EXIT_UNREAD
    except OSError as error:  # such as a state folder that cannot be written
        place = f": {error.filename}" if error.filename else ""
        sys.stderr.write(f"codeagent-lsp: {error.strerror or str(error) or type(error).__name__}{place}\n")
        code = EXIT_USAGE
    return code


def _speak_utf8() -> None:
    """Print UTF-8 into pipes and files, too, where Windows has another encoding, which lacks most letters."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8")


def _tell_what_this_is(key: str) -> None:
    """Say to somebody at a terminal that another program is awaited."""
    if sys.stdin is None or not sys.stdin.isatty():
        return
    from codeagent_lsp.terminal.display import user_locale
    from codeagent_lsp.texts import choose_language, text

    print(text(key, choose_language("auto", user_locale())), file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="codeagent-lsp", description="A coding agent that speaks the Language Server Protocol."
    )
    parser.add_argument("--version", action="version", version=f"codeagent-lsp {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    setup = commands.add_parser("setup", help="choose a model and try it: on this machine, by your key, or embedded")
    setup.set_defaults(run=_setup)
    _add_serve(commands)
    _add_run(commands)
    _add_batch(commands)
    _add_small(commands)
    _add_index(commands)
    _add_sandbox(commands)
    _add_acp(commands)
    _add_editor(commands)
    return parser


def _add_serve(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    serve = commands.add_parser("serve", help="the language server (the default command)")
    serve.add_argument("--stdio", action="store_true", help="serve on standard input and output (the default)")
    serve.add_argument("--tcp", metavar="HOST:PORT", type=_address, help="serve one client on a TCP port instead")
    serve.add_argument("--log-file", metavar="FILE", help="write the log to a file instead of standard error")
    serve.add_argument("--log-level", choices=LOG_LEVELS, default="warning", help="how much is logged")
    serve.set_defaults(run=_serve)


def _add_run(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    run = commands.add_parser("run", help="let the agent do a task in a folder, from the terminal")
    run.add_argument("task", metavar="TASK", help="what shall be done, in your words")
    run.add_argument("--workspace", metavar="DIR", default=".", help="the folder to work in (this one)")
    run.add_argument(
        "--mode",
        choices=("auto", "direct", "plan"),
        default="auto",
        help="`plan`: steps first, which you approve; `direct`: none; `auto`: where the task needs them",
    )
    run.add_argument(
        "--attempts",
        type=_attempts,
        default=1,
        metavar="N",
        help="try N times side by side and propose the best, by its tests (1)",
    )
    run.add_argument(
        "--apply",
        choices=("review", "auto"),
        default="review",
        help="`review` shows the changes and asks; `auto` writes them at once",
    )
    run.add_argument(
        "--yes", action="store_true", help="ask nothing: accept the changes and allow each call, this once"
    )
    run.add_argument(
        "--session",
        metavar="ID",
        default="",
        help="go on with this conversation of `sessions list`, `last` with the last one; TASK is what you say, or the "
        "answer to its question",
    )
    run.add_argument("--json", action="store_true", help="for programs: print each event as a line of JSON")
    run.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a setting for this run alone, such as model.name=my-model or permissions.mode=readOnly; may be repeated",
    )
    run.add_argument("--width", type=_width, metavar="COLUMNS", help="use this width instead of the terminal's")
    run.set_defaults(run=_run)
    apply = commands.add_parser("apply", help="look at what a run has left undecided, and apply or discard it")
    apply.add_argument("--yes", action="store_true", help="apply them without a question")
    apply.set_defaults(run=_apply)
    undo = commands.add_parser("undo", help="take back what a run has changed, and keep what was changed since")
    undo.add_argument("--yes", action="store_true", help="lines that were changed since, too, without a question")
    undo.set_defaults(run=_undo)
    for about_run in (apply, undo):
        about_run.add_argument("run_id", metavar="RUN", help="the run, as `codeagent-lsp run` names it at its end")
        about_run.add_argument("--workspace", metavar="DIR", default=".", help="the folder that it worked in")
        about_run.add_argument("--width", type=_width, metavar="COLUMNS", help="use this width, not the terminal's")


def _add_batch(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    batch = commands.add_parser("batch", help="let the agent do many tasks, each in a folder of its own")
    batch.add_argument("tasks", metavar="TASKS.jsonl", help="one JSON object a line: id, repo or folder, task, check")
    batch.add_argument("--out", metavar="DIR", default="batch", help="where the results go (batch)")
    where = batch.add_mutually_exclusive_group()
    where.add_argument("--jobs", type=_count, metavar="N", help="so many tasks at a time (half of the cores)")
    where.add_argument("--ray", metavar="ADDRESS", help="on the Ray cluster at this address; `auto` for the one here")
    batch.add_argument(
        "--attempts", type=_attempts, default=1, metavar="N", help="take the best of several attempts (1)"
    )
    batch.add_argument("--budget-usd", type=_dollars, metavar="X", help="spend at most so much on all tasks together")
    batch.add_argument("--resume", action="store_true", help="go on with DIR: what is finished is not done again")
    batch.add_argument("--report", action="store_true", help="write report.html and report.md into DIR")
    batch.add_argument("--yes", action="store_true", help="allow all that would need your approval, too")
    batch.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="a setting, as in model.baseUrl=URL; repeatable"
    )
    batch.set_defaults(run=_batch)


def _add_small(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    doctor = commands.add_parser("doctor", help="what works here, and what to do about what does not")
    doctor.add_argument("--workspace", metavar="DIR", default=".")
    doctor.add_argument("--json", action="store_true")
    doctor.set_defaults(run=_doctor)
    model = commands.add_parser("model", help="the embedded local model, and how a model gives edits")
    model.add_argument("action", choices=("list", "probe", "pull", "serve"))
    model.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="for probe: a setting, as in model.baseUrl=URL"
    )
    model.add_argument("--port", type=_port, default=0, metavar="PORT", help="for serve: the port on loopback")
    model.add_argument("--slots", type=_count, default=1, metavar="N", help="for serve: so many requests at a time (1)")
    model.set_defaults(run=_model)
    trace = commands.add_parser("trace", help="what was recorded of the sessions of a folder")
    trace.add_argument("action", choices=("show", "tail"))
    trace.add_argument("session", nargs="?", default="", metavar="SESSION", help="only this session")
    trace.add_argument("--workspace", metavar="DIR", default=".")
    trace.add_argument("--run", metavar="ID", default="", dest="run_id", help="only this run")
    trace.add_argument("--last", type=_count, metavar="COUNT", help="only the last records")
    trace.add_argument("--full", action="store_true", help="all that tools returned and commands printed, line by line")
    trace.set_defaults(run=_trace)
    sessions = commands.add_parser("sessions", help="the runs of a folder: the last ones, or those with some words")
    sessions.add_argument("action", choices=("list", "search"))
    sessions.add_argument("query", nargs="*", metavar="WORDS")
    sessions.add_argument("--workspace", metavar="DIR", default=".")
    sessions.add_argument("--limit", type=_count, metavar="N", default=20, help="at most so many (20)")
    sessions.add_argument("--json", action="store_true")
    sessions.set_defaults(run=_sessions)
    trust = commands.add_parser("trust", help="trust what a folder brings: skills, commands, agents, hooks, own tools")
    trust.add_argument("names", nargs="*", metavar="NAME", help="only what has this name or path; else all of it")
    trust.add_argument("--workspace", metavar="DIR", default=".")
    trust.add_argument("--yes", action="store_true", help="trust all of it as it is now, without a question")
    trust.add_argument("--list", action="store_true", dest="listing", help="only list it")
    trust.set_defaults(run=_trust)
    schema = commands.add_parser("schema", help="JSON Schemas, generated from the code")
    schema.add_argument("subject", choices=("settings", "events"))
    schema.set_defaults(run=_schema)


def _add_index(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    index = commands.add_parser("index", help="build or refresh the code index of a folder")
    index.add_argument("--workspace", metavar="DIR", default=".")
    index.add_argument("--stats", action="store_true", help="also tell what is in it")
    index.add_argument("--json", action="store_true", help="print its definitions and imports as data")
    index.set_defaults(run=_index)
    code_map = commands.add_parser("map", help="the map of the code as the model gets it")
    code_map.add_argument("--workspace", metavar="DIR", default=".")
    code_map.add_argument("--query", metavar="TEXT", default="", help="the map for this task instead of the overview")
    code_map.add_argument("--tokens", type=_count, metavar="N", default=1024, help="at most so many (1024)")
    code_map.add_argument("--json", action="store_true")
    code_map.set_defaults(run=_map)
    search = commands.add_parser("search", help="the pieces of code that answer a question best")
    search.add_argument("query", metavar="QUERY")
    search.add_argument("--workspace", metavar="DIR", default=".")
    search.add_argument("--limit", type=_count, metavar="N", default=10, help="at most so many (10)")
    search.add_argument("--json", action="store_true")
    search.set_defaults(run=_search)


def _add_sandbox(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    sandbox = commands.add_parser("sandbox-mcp", help="the tools on a private view of a folder, as an MCP server")
    sandbox.add_argument("--stdio", action="store_true", help="serve on standard input and output (the default)")
    for option, name in (("--http", "streamable HTTP"), ("--ws", "WebSocket")):
        sandbox.add_argument(
            option,
            metavar="HOST:PORT",
            type=_address,
            nargs="?",
            const=("127.0.0.1", None),
            help=f"serve {name} on loopback; without an address on port 8765, or the next free one",
        )
    sandbox.add_argument("--workspace", metavar="DIR", default=".", help="the folder to work in")
    sandbox.set_defaults(run=_sandbox)


def _add_acp(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    acp = commands.add_parser("acp", help="the agent for editors that speak the Agent Client Protocol (ACP)")
    # Some clients put the arguments of the authentication behind those of the agent.
    acp.add_argument("dialogue", nargs="?", choices=("setup",), help="the same as `codeagent-lsp setup`")
    acp.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="a setting, as in model.baseUrl=URL; repeatable"
    )
    acp.set_defaults(run=_acp)


def _add_editor(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    editor = commands.add_parser("editor-mcp", help="your editor for other agents, as an MCP server (stdio)")
    editor.add_argument("--workspace", metavar="DIR", default=".", help="a folder that is open in the editor, or below")
    editor.set_defaults(run=_editor)


def _acp(options: argparse.Namespace) -> int:
    if options.dialogue:
        return _setup(options)
    from codeagent_lsp.acp_agent.serve import acp_command

    _tell_what_this_is("cli.bare.acp")
    return acp_command(options.set)


def _setup(_options: argparse.Namespace) -> int:
    from codeagent_lsp.terminal.setup import setup_command

    return setup_command()


def _serve(options: argparse.Namespace) -> int:  # noqa: RET503 - serving ends the process
    create_server = _load_server()
    try:
        _configure_logging(options)
    except OSError as error:
        sys.stderr.write(f"codeagent-lsp serve: cannot write the log file: {error}\n")
        return EXIT_USAGE
    server = create_server()
    if options.tcp is None:
        server.serve_stdio()  # never returns
    server.serve_tcp(*options.tcp)


def _load_server() -> Callable[[], CodeAgentServer]:
    """Return `create_server`, imported with rare garbage collection: nearly all objects made by the imports stay."""
    import gc  # late, as all below: each subcommand loads only its own parts

    usual = gc.get_threshold()
    gc.set_threshold(20_000, 50, 100)
    from codeagent_lsp.app import create_server

    # What is loaded by now stays for good, so that later collections need not look at it.
    gc.freeze()
    gc.set_threshold(*usual)
    return create_server


def _configure_logging(options: argparse.Namespace) -> None:
    import logging

    logging.basicConfig(
        filename=options.log_file,
        level=options.log_level.upper(),
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )


def _run(options: argparse.Namespace) -> int:
    from codeagent_lsp.terminal.run import run_task

    return run_task(options)


def _apply(options: argparse.Namespace) -> int:
    from codeagent_lsp.terminal.run import apply_run

    return apply_run(options)


def _undo(options: argparse.Namespace) -> int:
    from codeagent_lsp.terminal.run import undo_run

    return undo_run(options)


def _batch(options: argparse.Namespace) -> int:
    from codeagent_lsp.batch.command import batch_command

    return batch_command(options)


def _doctor(options: argparse.Namespace) -> int:
    from codeagent_lsp.terminal.reports import print_doctor

    return print_doctor(options.workspace, as_json=options.json)


def _model(options: argparse.Namespace) -> int:
    from codeagent_lsp.terminal.model import model_command

    return model_command(options.action, options.port, options.set, options.slots)


def _trace(options: argparse.Namespace) -> int:
    from codeagent_lsp.terminal.reports import TAIL, show_trace

    follow = options.action == "tail"
    last = options.last or (TAIL if follow else None)
    return show_trace(
        options.workspace,
        session=options.session,
        run=options.run_id,
        last=last,
        follow=follow,
        full=options.full,
    )


def _sessions(options: argparse.Namespace) -> int:
    from codeagent_lsp.terminal.reports import sessions_command

    words = " ".join(options.query)
    return sessions_command(options.action, words, options.workspace, options.limit, as_json=options.json)


def _trust(options: argparse.Namespace) -> int:
    from codeagent_lsp.terminal.reports import trust_command

    return trust_command(options.workspace, yes=options.yes, listing=options.listing, names=options.names)


def _index(options: argparse.Namespace) -> int:
    from codeagent_lsp.terminal.index import index_command

    return index_command(options.workspace, stats=options.stats, as_json=options.json)


def _map(options: argparse.Namespace) -> int:
    from codeagent_lsp.terminal.index import map_command

    return map_command(options.workspace, options.query, options.tokens, as_json=options.json)


def _search(options: argparse.Namespace) -> int:
    from codeagent_lsp.terminal.index import search_command

    return search_command(options.workspace, options.query, options.limit, as_json=options.json)


def _sandbox(options: argparse.Namespace) -> int:
    from codeagent_lsp.mcp_server.command import sandbox_command
    from codeagent_lsp.terminal.display import user_locale
    from codeagent_lsp.texts import choose_language

    language = choose_language("auto", user_locale())
    if options.stdio or (options.http is None and options.ws is None):
        _tell_what_this_is("cli.bare.mcp")
    return sandbox_command(options.workspace, language, http=options.http, ws=options.ws, stdio=options.stdio)


def _editor(options: argparse.Namespace) -> int:
    from codeagent_lsp.mcp_server.command import editor_command
    from codeagent_lsp.terminal.display import user_locale
    from codeagent_lsp.texts import choose_language

    _tell_what_this_is("cli.bare.mcp")
    return editor_command(options.workspace, choose_language("auto", user_locale()))


def _schema(options: argparse.Namespace) -> int:
    from codeagent_lsp.schemas import schema_text

    print(schema_text(options.subject))
    return 0


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    # `[::1]:2087`.
    return host.strip("[]") or "127.0.0.1", _port(port)


def _port(text: str) -> int:
    return _whole(text, range(1 << 16), "a port is a number up to 65535 (as in 127.0.0.1:2087)")


def _width(text: str) -> int:
    return _whole(text, range(1, sys.maxsize), "a width is a number of columns")


def _attempts(text: str) -> int:
    from codeagent_lsp.config import MOST_ATTEMPTS

    return _whole(text, range(1, MOST_ATTEMPTS + 1), f"from 1 to {MOST_ATTEMPTS} attempts")


def _count(text: str) -> int:
    return _whole(text, range(1, sys.maxsize), "a number from 1 on")


def _whole(text: str, allowed: range, words: str) -> int:
    if not text.isdecimal() or int(text) not in allowed:
        raise argparse.ArgumentTypeError(f"{words}, not {text!r}")
    return int(text)


def _dollars(text: str) -> float:
    try:
        usd = float(text)
    except ValueError:
        usd = 0.0
    if not 0 < usd < float("inf"):
        raise argparse.ArgumentTypeError(f"an amount in USD, more than 0, not {text!r}")
    return usd


if __name__ == "__main__":
    sys.exit(main())
