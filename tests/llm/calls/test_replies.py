"""Whole replies as servers pass them on that know nothing of a model's template: what is shown of them, what is called,
and whether the model hears of what could not be read. However a reply is cut, the outcome is the same.
"""

from __future__ import annotations

import json

import pytest

from codeagent_lsp.llm.calls.streamed_calls import StreamParser
from codeagent_lsp.llm.thinking import ThinkFilter
from tests.llm.support import tool

TOOLS = (
    tool("edit_file", ("path", "old", "new"), path="string", old="string", new="string"),
    tool("list_dir", path="string"),
)
EDIT = ("edit_file", {"path": "a.py", "old": "x", "new": "y"})
ARGUMENTS = json.dumps(EDIT[1])
NAMED = json.dumps({"name": "edit_file", "arguments": EDIT[1]})
CALLED = f"<tool_call>{NAMED}</tool_call>"
CHANNEL, MESSAGE, START, END, CALL = "<|channel|>", "<|message|>", "<|start|>", "<|end|>", "<|call|>"
TO = "to=functions.edit_file"

READ = {
    "recipient behind the channel": f"{CHANNEL}commentary {TO} <|constrain|>json{MESSAGE}{ARGUMENTS}{CALL}",
    "recipient behind the role": f"{START}assistant {TO}{CHANNEL}commentary json{MESSAGE}{ARGUMENTS}{CALL}",
    "without the first token": f"assistant {TO}{CHANNEL}commentary{MESSAGE}{ARGUMENTS}",
    "in the final channel": f"{CHANNEL}final {TO} <|constrain|>json{MESSAGE}{ARGUMENTS}{CALL}",
    "with more blanks": f"{CHANNEL}commentary  {TO}  <|constrain|> json {MESSAGE}{ARGUMENTS}{CALL}",
    "behind thoughts": f"{CHANNEL}analysis{MESSAGE}hm{END}{START}assistant{CHANNEL}commentary {TO}{MESSAGE}{ARGUMENTS}",
    "behind thoughts that have no end": (
        f"{CHANNEL}analysis{MESSAGE}hm{START}assistant{CHANNEL}commentary {TO}{MESSAGE}{ARGUMENTS}{CALL}"
    ),
    "without tokens": f"analysiswe look.assistantcommentary {TO} json{ARGUMENTS}",
    "with an invented result": (
        f"{CHANNEL}commentary {TO}{MESSAGE}{ARGUMENTS}{CALL}{START}functions.edit_file to=assistant{CHANNEL}"
        f'commentary{MESSAGE}{{"ok": true}}{END}'
    ),
    "in a wrapper that is not known": f"<tool_use>\n{NAMED}\n</tool_use>",
    "closed by another tag": f"<tool_call>{NAMED}</tool>",
    "one bracket too many": f"<tool_call>{NAMED}}}</tool_call>",
    "a response invented": f'{CALLED}\n<tool_response>\n{{"ok": true}}\n</tool_response>\nI changed it.',
    "an observation invented": f"{CALLED}\nObservation: changed.\nI changed it.",
    "our own words imitated": f"{CALLED}\nResult of edit_file:\nStaged.\n\nI changed it.",
    "the user's turn invented": f"{CALLED}<|im_end|>\n<|im_start|>user\nThanks!<|im_end|>",
    "Gemma": '<|tool_call>call:edit_file{path:<|"|>a.py<|"|>,old:<|"|>x<|"|>,new:<|"|>y<|"|>}<tool_call|>',
    "FunctionGemma": (
        "<start_function_call>call:edit_file{path:<escape>a.py<escape>,old:<escape>x<escape>,new:<escape>y<escape>}"
        "<end_function_call>"
    ),
    "the name as the key": f'{{"edit_file": {ARGUMENTS}}}',
    "ReAct": f"Action: edit_file\nAction Input: {ARGUMENTS}",
    "ReAct in a fence": f"Action: edit_file\nAction Input:\n```json\n{ARGUMENTS}\n```",
}
TOLD = {
    "arguments alone": ARGUMENTS,
    "arguments alone in a fence": f"```json\n{ARGUMENTS}\n```",
    "an unknown tool without arguments": '{"tool": "replace_text", "path": "a.py"}',
    "an unknown tool behind words": 'I replace it.\n\n{"name": "replace_text", "arguments": {"path": "a.py"}}',
    "arguments beside the name, behind words": f'I edit it.\n\n{{"name": "edit_file", {ARGUMENTS[1:]}',
    "a pair": f'["edit_file", {ARGUMENTS}]',
    "an unknown action with words": "Action: replace\nAction Input: a.py",
    "a command's form": f"/edit_file {ARGUMENTS}",
    "a mention's form": f"@edit_file {ARGUMENTS}",
    "a heading over a fence": f"### edit_file\n```json\n{ARGUMENTS}\n```",
    "a namespace": '<function_calls>\n<invoke name="edit_file">\n</invoke>\n</function_calls>',
    "code for another tool": f"{CHANNEL}analysis to=python code{MESSAGE}print(1){CALL}",
    "torn": f'{CHANNEL}commentary {TO}{MESSAGE}{{"path": "a.py, "old": {CALL}',
    "nested beyond reason": CALLED.replace('"a.py"', "[" * 200 + "]" * 200),
}
ANSWERS = {
    "final": (f"{CHANNEL}analysis{MESSAGE}hm{START}assistant{CHANNEL}final{MESSAGE}It is 2.", "It is 2."),
    "final, role first": (f"assistant{CHANNEL}final{MESSAGE}It is 2.", "It is 2."),
    "final, behind words": (f"I look.{CHANNEL}final{MESSAGE}It is 2.", "I look.\n\nIt is 2."),
    "bare": ("analysiswe look.assistantfinalIt is 2.", "It is 2."),
    "bare, on lines": ("analysis\nWe look.\nassistantfinal\nIt is 2.", "It is 2."),
    "another turn": (f"It is 2.{END}{START}user{MESSAGE}next", "It is 2."),
    "another turn of ChatML": ("It is 2.<|im_end|>\n<|im_start|>user\nnext", "It is 2."),
    "another turn of Llama": ("It is 2.<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nnext", "It is 2."),
    "another turn of Gemma": ("It is 2.<end_of_turn>\n<start_of_turn>user\nnext", "It is 2."),
    "another turn of Mistral": ("It is 2.</s>[INST] next [/INST]", "It is 2."),
    "its own turn goes on": ("It is 2.<|im_end|>\n<|im_start|>assistant\n\nOr 3.", "It is 2.\n\nOr 3."),
    "thoughts later": ("I look.\n<think>\nhm\n</think>\nIt is 2.", "I look.\n\n\nIt is 2."),
    "of the format itself": (
        f"```\n{START}assistant{CHANNEL}final{MESSAGE}Hi{END}{START}user{MESSAGE}x\n```\nSo it is.",
        f"```\n{START}assistant{CHANNEL}final{MESSAGE}Hi{END}{START}user{MESSAGE}x\n```\nSo it is.",
    ),
    "in code": (f"`{END}{START}user` ends it.", f"`{END}{START}user` ends it."),
}  # fmt: skip


def outcome(reply: str, size: int) -> tuple[str, list[tuple[str, object]], str]:
    """What is shown, called and told of a reply that comes in pieces of `size` characters."""
    sieve, parser = ThinkFilter(), StreamParser(TOOLS)
    pieces = [sieve.feed(reply[at : at + size])[0] for at in range(0, len(reply), size)]
    shown = ""
    for piece in (*pieces, sieve.close()[0]):
        parser.feed(piece)
        shown += parser.visible()
    found = parser.result()
    return shown + parser.rest(), [(call.name, dict(call.arguments)) for call in found.calls], found.problem


@pytest.mark.parametrize("reply", READ.values(), ids=READ.keys())
def test_a_call_is_read_and_nothing_of_it_is_shown(reply: str) -> None:
    for size in (1, 7, len(reply)):
        shown, calls, problem = outcome(reply, size)
        assert (calls, problem) == ([EDIT], ""), (size, calls)
        # While the reply streams, the fence below an action may be that of an answer.
        assert shown.strip() == "" or ("```" in reply and shown.strip() == "Action: edit_file\nAction Input:")


@pytest.mark.parametrize("reply", TOLD.values(), ids=TOLD.keys())
def test_what_cannot_be_read_is_no_answer(reply: str) -> None:
    for size in (1, 7, len(reply)):
        _, calls, problem = outcome(reply, size)
        assert not calls and problem, (size, calls)


@pytest.mark.parametrize(("reply", "wanted"), ANSWERS.values(), ids=ANSWERS.keys())
def test_of_an_answer_only_its_text_is_shown(reply: str, wanted: str) -> None:
    for size in (1, 7, len(reply)):
        assert outcome(reply, size) == (wanted, [], "")


def test_two_calls_in_one_pair_of_tags_are_both_read() -> None:
    assert outcome(f"<tool_call>{NAMED}\n{NAMED}</tool_call>", 5) == ("", [EDIT, EDIT], "")


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece", ["<think></think>", "</think>", "<|end|>", "<|im_end|><|im_start|>", "\n<think>x", "<"]
)
def test_a_hostile_reply_takes_no_time(piece: str) -> None:
    sieve = ThinkFilter()
    text, reasoning = sieve.feed(piece * (40_000 // len(piece)))
    assert len(text) + len(reasoning) <= 40_000
