"""Which classes and objects of a file are tools, by each usual way of giving a name, and what is said of the others."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import pytest

from codeagent_lsp.own_tools import Tool
from codeagent_lsp.tools.own.worker import NotLoaded, _call, description_of, load

HEAD = """
from abc import ABC, abstractmethod
from dataclasses import dataclass
from codeagent_lsp.own_tools import Tool, tool

"""
RUN = """
    def run(self, arguments):
        return "done"
"""
INIT = f"""
class Greet(Tool):
    def __init__(self):
        super().__init__({{}}){RUN}"""


def loaded(folder: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> dict[str, Tool]:
    file = folder / "mine.py"
    file.write_text(HEAD + code)
    monkeypatch.setitem(sys.modules, "codeagent_own_tools", sys)  # what loading puts there goes with the test
    return load("file", str(file), hashlib.sha256(file.read_bytes()).hexdigest())


@pytest.mark.parametrize(
    "code",
    [
        INIT.format('"greet", "Says hello."'),
        INIT.format('name="greet", description="Says hello."'),
        f'class Greet(Tool):\n    name = "greet"\n    description = "Says hello."{RUN}',
        f'class Greet(Tool):\n    """Says hello."""\n    name = "greet"{RUN}',
        f'class Greet(Tool):\n    def __init__(self):\n        self.name = "greet"\n'
        f'        self.description = "Says hello."{RUN}',
        f"""class Greet(Tool):
    @property
    def name(self):
        return "greet"
    @property
    def description(self):
        return "Says hello."{RUN}""",
        f'@dataclass\nclass Greet(Tool):\n    name: str = "greet"\n    description: str = "Says hello."{RUN}',
        f'@dataclass(frozen=True)\nclass Greet(Tool):\n    name: str = "greet"\n'
        f'    description: str = "Says hello."{RUN}',
        f'@tool(name="greet", description="Says hello.")\nclass Greet(Tool):{RUN}',
        f'@tool\nclass greet(Tool):\n    """Says hello."""{RUN}',
        '@tool("greet")\ndef other():\n    """Says hello."""\n',
        '@tool(name="greet", description="Says hello.")\ndef other(): ...\n',
        '@tool\nasync def greet():\n    """Says hello."""\n',
        f'class Greet(Tool):\n    def __init__(self, name):\n        super().__init__(name, "Says hello."){RUN}'
        '\nx = Greet("greet")\n',
        f'class Greet(Tool):\n    description = "Says hello."{RUN}\nTOOLS = [Greet("greet")]\n',
        f'class Base(Tool):{RUN}\nclass Greet(Base):\n    """Says hello."""\n    name = "greet"\n',
        f"class Base(Tool, ABC):\n    @abstractmethod\n    def more(self): ...{RUN}\n"
        f'class Greet(Base):\n    """Says hello."""\n    name = "greet"\n    def more(self): ...\n',
        'class Greet(Tool):\n    name = "greet"\n    def execute(self, who: str):\n        """Says hello."""\n',
        f'class Greet(Tool):\n    """Says hello."""\n    name = "greet"{RUN}\nfirst = Greet()\n',
    ],
)
def test_each_usual_way_of_naming_a_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    tools = loaded(tmp_path, monkeypatch, code)
    assert {name: description_of(tool) for name, tool in tools.items()} == {"greet": "Says hello."}
    assert tools["greet"].get_parameters_schema()["type"] == "object"


def test_arguments_of_execute_are_its_parameters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = (
        'class Greet(Tool):\n    """Hi."""\n    name = "greet"\n    def execute(self, who: str, times: int = 1): ...\n'
    )
    schema = loaded(tmp_path, monkeypatch, code)["greet"].get_parameters_schema()
    assert (sorted(schema["properties"]), schema["required"]) == (["times", "who"], ["who"])


STATED = '{"who": {"type": "string"}}'
WHO = {"who": "you"}


@pytest.mark.parametrize(
    ("body", "arguments"),
    [
        (f'    def __init__(self):\n        super().__init__("greet", "Hi.", parameters={STATED}){RUN}', WHO),
        (f"    parameters = {STATED}{RUN}", WHO),
        ('    def run(self):\n        return "done"\n', {}),
        ('    def run(self, who: str):\n        return "done" if who == "you" else "?"\n', WHO),
        ('    def run(self, who, times=1):\n        return "done" if who == "you" else "?"\n', WHO),
        ('    def run(self, **given):\n        return "done" if given["who"] == "you" else "?"\n', WHO),
        ('    def run(self, arguments=None):\n        return "done" if isinstance(arguments, dict) else "?"\n', {}),
        ('    def execute(self, who: str):\n        return b"done"\n', WHO),
    ],
)
def test_parameters_stated_in_each_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, arguments: dict[str, str]
) -> None:
    code = f'class Greet(Tool):\n    """Hi."""\n    name = "greet"\n{body}'
    tools = loaded(tmp_path, monkeypatch, code)
    schema = tools["greet"].get_parameters_schema()
    assert schema["type"] == "object" and (set(arguments) <= set(schema["properties"]) or "**" in body)
    assert _call(tools["greet"], arguments) == {"content": [{"type": "text", "text": "done"}]}


@pytest.mark.parametrize(
    ("result", "text"),
    [("{1}", "[1]"), ("(part for part in 'ab')", '["a", "b"]'), ('b"done"', "done"), ("{'a': {2}}", None)],
)
def test_results_that_json_does_not_know(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, result: str, text: str | None
) -> None:
    tools = loaded(tmp_path, monkeypatch, f'@tool\ndef greet():\n    """Hi."""\n    return {result}\n')
    shown = _call(tools["greet"], {})
    assert json.loads(json.dumps(shown))["content"] == ([] if text is None else [{"type": "text", "text": text}])


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (f'class Greet(Tool):\n    """Hi."""{RUN}', "the class Greet has no name: set `name ="),
        (INIT.format('"greet"'), "the class Greet has no description: give it a docstring"),
        (f'@dataclass\nclass Greet(Tool):\n    name: str = "greet"{RUN}', "the class Greet has no description"),
        ('class Greet(Tool):\n    """Hi."""\n    name = "greet"\n', "the class Greet defines neither `run(self"),
        ('greet = Tool("greet", "Says hello.")\n', "the tool 'greet' defines neither `run(self"),
        (INIT.format('"say hello", "Hi."'), "'say hello' cannot be the name of a tool"),
        (f'class Greet(Tool):\n    def __init__(self, name):\n        super().__init__(name, "Hi."){RUN}',
         "cannot be made without arguments (missing a required argument: 'name')"),
        ('class Greet(Tool, ABC):\n    name = "greet"\n    @abstractmethod\n    def run(self, arguments): ...\n',
         "the class Greet is no tool yet: it does not define run"),
        (f'class Greet:\n    name = "greet"{RUN}', "defines no tool: decorate a function with @tool, or derive a class "
         "from Tool; the class Greet is neither"),
        ("def greet(): ...\ndef leave(): ...\n", "the function greet, the function leave are neither"),
        (f'@tool\nclass Greet:{RUN}', "the class Greet is no tool: derive it from Tool"),
        ("tool(3)\n", "@tool is for functions and for classes that derive from Tool, not for 3"),
        ('class Greet(Tool):\n    """Hi."""\n    name = 3' + RUN, "3 cannot be the name of a tool"),
    ],
)  # fmt: skip
def test_what_is_no_tool_is_told_with_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, said: str
) -> None:
    with pytest.raises(NotLoaded) as refused:
        loaded(tmp_path, monkeypatch, code)
    assert said in str(refused.value)
