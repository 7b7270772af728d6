"""The tools `request_env_var`, `get_env_var`, `check_env_vars`: values that only commands get to see.

Not here: where values are kept (`variables.py`), running commands (`commands/command_tools.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar

from pydantic import Field

from codeagent_lsp.errors import PermissionDenied, ToolFailed, ToolRetry
from codeagent_lsp.tools.asking import Question
from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.tools.tool import Example, Parameters, Tool, ToolOutput
from codeagent_lsp.tools.traits import ToolTraits
from codeagent_lsp.tools.variables.variables import LONGEST, NAME, Variable, Variables, is_name
from codeagent_lsp.workspace.text.visible import one_line, visible

Name = Annotated[str, Field(pattern=NAME)]

HOW = "Commands get it by run_cmd with env_vars; you never see the value."


class RequestEnvVarParameters(Parameters):
    """Parameters of `request_env_var`: the variable, and the reason that the user reads."""

    name: Name
    reason: str = Field("", max_length=500, description="What it is needed for; the user reads it")


class NameParameters(Parameters):
    """Parameters of `get_env_var`: the name of one variable."""

    name: Name


class NamesParameters(Parameters):
    """Parameters of `check_env_vars`: the names of up to 50 variables."""

    names: list[Name] = Field(min_length=1, max_length=50)


class RequestEnvVar(Tool[RequestEnvVarParameters]):
    """The tool `request_env_var`: asks the user for the value of a variable that commands may then use."""

    traits: ClassVar[ToolTraits] = ToolTraits(
        "request_env_var",
        "Ask the user for an environment variable such as an API key. Commands can use it; you never see the value.",
        "ask",
        "env",
        timeout=None,
    )
    parameters = RequestEnvVarParameters
    example: ClassVar[Example] = {"name": "DATABASE_URL", "reason": "The tests need a database."}
    output = dict[str, Any]  # name, set, length

    async def run(self, arguments: RequestEnvVarParameters, context: ToolContext) -> ToolOutput:
        """Keep the value for the session, or in the keyring if the user says so, and return its length; never the
        value. PermissionDenied if the user gives none, ToolRetry for a name that commands may not have, ToolFailed for
        a value that cannot be one.
        """
        variables, name = _variables(context), _own(arguments.name)
        answer = await context.asker.ask(_question(arguments, context))
        value = answer[0] if answer else ""
        if not value:
            raise PermissionDenied(
                f"The user gave no value for {name}. They were told how to set it. Go on without it, or ask what to do."
            )
        if len(value) > LONGEST or "\0" in value:
            raise ToolFailed(f"What the user gave for {name} cannot be the value of a variable.")
        variables.keep(name, value)
        # who gives a value for commands wants them to use it; sending it away is another question
        variables.allow(Variable(name, "session", value), network=False)
        kept = await _store(name, value, variables, context)
        return ToolOutput(f"{name} is set {kept}. {HOW}", {"name": name, "set": True, "length": len(value)})


class GetEnvVar(Tool[NameParameters]):
    """The tool `get_env_var`: whether a variable has a value, without the value."""

    traits: ClassVar[ToolTraits] = ToolTraits(
        "get_env_var", "Whether an environment variable has a value, and its length; never the value.", "read", "env",
        timeout=None,
    )  # fmt: skip
    parameters = NameParameters
    example: ClassVar[Example] = {"name": "DATABASE_URL"}
    output = dict[str, Any]  # name, set, and length and source where it is set

    async def run(self, arguments: NameParameters, context: ToolContext) -> ToolOutput:
        """Return whether it is set, its length in characters and its source. ToolRetry for a name that commands may not
        have.
        """
        name = _own(arguments.name)
        found = await _variables(context).find(name)
        if found is None:
            return ToolOutput(f"{name} is not set. request_env_var asks for it.", {"name": name, "set": False})
        length = len(found.value)
        text = f"{name} is set ({found.source}, {length} characters). {HOW}"
        return ToolOutput(text, {"name": name, "set": True, "length": length, "source": found.source})


class CheckEnvVars(Tool[NamesParameters]):
    """The tool `check_env_vars`: which of several variables have a value, without the values."""

    traits: ClassVar[ToolTraits] = ToolTraits(
        "check_env_vars", "Which of these environment variables have a value.", "read", "env", timeout=None
    )
    parameters = NamesParameters
    example: ClassVar[Example] = {"names": ["DATABASE_URL", "CI"]}
    output = dict[str, bool]

    async def run(self, arguments: NamesParameters, context: ToolContext) -> ToolOutput:
        """Return a line for each variable; the data maps each name to whether it is set. ToolRetry for a name that
        commands may not have.
        """
        variables = _variables(context)
        found = {name: await variables.find(_own(name)) for name in dict.fromkeys(arguments.names)}
        lines = [f"{name}: {f'set ({item.source})' if item else 'missing'}" for name, item in found.items()]
        return ToolOutput("\n".join(lines), {name: item is not None for name, item in found.items()})


async def values_for(names: Sequence[str], context: ToolContext, *, network: bool) -> dict[str, str]:
    """Return the values of these variables by name, for a command with `network` or without. The user is asked about
    each, once in a session. ToolRetry if one has no value, PermissionDenied if the user does not allow one.
    """
    if not names:
        return {}
    variables, found = _variables(context), []
    for name in dict.fromkeys(names):
        variable = await variables.find(_own(name))
        if variable is None:
            raise ToolRetry(f"{name} has no value. Ask for it with request_env_var (enable_tools env).")
        found.append(variable)
    # the user is asked only once all are known to exist: no consent is given for a call that cannot run
    for variable in found:
        if not variables.allowed(variable.name, network=network):
            await _ask_to_use(variable, context, network=network)
            variables.allow(variable, network=network)
    return {variable.name: variable.value for variable in found}


def _variables(context: ToolContext) -> Variables:
    return context.need(Variables, "There are no variables here.")


def _own(name: str) -> str:
    if not is_name(name):
        raise ToolRetry(f"{one_line(name, 60)} is not for commands; choose another variable.")
    return name


def _question(arguments: RequestEnvVarParameters, context: ToolContext) -> Question:
    reason = one_line(arguments.reason, 150)
    title = context.words("env.value", name=arguments.name, reason=reason or "-")
    return Question("question", title, detail=visible(arguments.reason), secret=True)


async def _store(name: str, value: str, variables: Variables, context: ToolContext) -> str:
    """Store a value as long as the user wants, and return how long, in words for the model."""
    if not await variables.has_vault():
        return "for this session"
    words = context.words
    session, keyring = words("env.session"), words("env.keyring")
    answer = await context.asker.ask(Question("question", words("env.keep", name=name), (session, keyring)))
    if answer != (keyring,):
        return "for this session"
    try:
        await variables.store(name, value)
    except ToolFailed as problem:
        return f"for this session ({problem})"
    return "and kept in the system's keyring"


async def _ask_to_use(variable: Variable, context: ToolContext, *, network: bool) -> None:
    words = context.words
    deny, allow = words("choice.deny"), words("choice.session")
    title = words("env.use_online" if network else "env.use", name=variable.name)
    answer = await context.asker.ask(Question("approval", title, (deny, allow), danger=True))
    if answer != (allow,):
        raise PermissionDenied(f"The user does not let commands use {variable.name}. Go on without it.")
