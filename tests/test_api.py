"""`codeagent_lsp.api` as another program uses it: its names, their signatures, and one honest use of each."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

from codeagent_lsp import api

SIGNATURES = {
    "replace": "(text: 'str', old: 'str', new: 'str', *, replace_all: 'bool' = False) -> 'Replacement'",
    "apply_patch": "(files: 'Mapping[str, str | None]', patch: 'str') -> 'FileTexts'",
    "parse_tool_calls": "(text: 'str', tools: 'Iterable[ToolSpec]') -> 'list[ToolCall]'",
    "judge": "(command: 'str', *, allow: 'Sequence[str]' = (), ask: 'Sequence[str]' = (), deny: 'Sequence[str]' = ())"
    " -> 'Judgement'",
}
TOOLS: list[api.ToolSpec] = [
    {
        "name": "read",
        "description": "Reads a file.",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    }
]
CALL = '<tool_call>\n{"name": "read", "arguments": {"path": "a.py"}}\n</tool_call>'


def test_every_name_is_there_and_documented() -> None:
    for name in api.__all__:
        assert inspect.getdoc(getattr(api, name)), name
    assert api.__all__ == sorted(api.__all__)


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures_stay(name: str) -> None:
    assert str(inspect.signature(getattr(api, name))) == SIGNATURES[name]


def test_an_edit() -> None:
    assert api.replace("a = 1\nb = 2\n", "b = 2", "b = 3") == api.Replacement("a = 1\nb = 3\n", "exact")
    with pytest.raises(api.EditRefused) as refused:
        api.replace("a = 1\na = 1\n", "a = 1", "a = 2")
    assert refused.value.reason == "ambiguous"


def test_a_patch_is_applied_as_a_whole_or_not() -> None:
    files = {"a.py": "a = 1\n", "b.py": "b = 1\n"}
    good = "*** Begin Patch\n*** Update File: a.py\n@@\n-a = 1\n+a = 2\n*** Delete File: b.py\n*** End Patch\n"
    assert api.apply_patch(files, good) == {"a.py": "a = 2\n", "b.py": None}
    with pytest.raises(api.PatchRefused):
        api.apply_patch(files, good.replace("-a = 1", "-a = 9"))


def test_calls_in_a_text_and_in_a_stream() -> None:
    assert [(call.name, call.arguments) for call in api.parse_tool_calls(CALL, TOOLS)] == [("read", {"path": "a.py"})]
    parser = api.StreamParser(TOOLS)
    found = [call for character in CALL for call in parser.feed(character)] + parser.close()
    assert [(call.name, call.arguments) for call in found] == [("read", {"path": "a.py"})]


def test_judgements() -> None:
    decisions = [api.judge(command).decision for command in ("ls", "rm -rf build", "rm -rf /")]
    assert decisions == ["allow", "ask", "deny"]
    assert api.judge("make all", allow=["make *"]).decision == "allow"
    assert api.judge("ls -l", deny=["ls *"]).decision == "deny"


def test_a_loop_is_noticed() -> None:
    guard = api.LoopGuard()
    seen = [guard.observe_call("read", {"path": "a.py"}, "a = 1") for _ in range(3)]
    assert seen[:2] == [None, None]
    assert isinstance(seen[2], api.Anomaly)


def test_secrets_are_masked_and_put_back() -> None:
    secret = "gh" + "p_" + "a1B2c3D4e5F6" * 3
    assert secret not in str(api.Sanitizer().sanitize({"deep": [f"token = '{secret}'"]}))
    masking = api.Masking()
    hidden = masking.hide(f"token = '{secret}'")
    assert secret not in hidden
    assert masking.reveal(hidden) == f"token = '{secret}'"


def test_a_tool_of_another_program() -> None:
    class Shout(api.Tool[api.Parameters]):
        traits = api.ToolTraits("shout", "Shouts.", "read")
        parameters = api.Parameters

        async def run(self, arguments: api.Parameters, context: api.ToolContext) -> api.ToolOutput:
            return api.ToolOutput("HO")

    assert Shout().spec()["name"] == "shout"


@pytest.mark.slow
def test_it_can_be_imported_first() -> None:
    """Alone in a new process, as others do: no other import has come before."""
    code = "import codeagent_lsp.api as api; print(api.replace('a', 'a', 'b').text)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("b\n", "")


def test_it_holds_no_code_of_its_own() -> None:
    tree = ast.parse(Path(api.__file__).read_text())
    kinds = {type(node) for node in tree.body[1:]}
    assert kinds == {ast.ImportFrom, ast.Assign}
