"""What hooks answer: by exit codes, words and JSON, also what is not quite as it should be."""

from __future__ import annotations

import json
from typing import Any

import pytest

from codeagent_lsp.shadow.shell import Finished
from codeagent_lsp.tools.hooks.hook_protocol import UNREADABLE, HookAnswer, answer_of


def answered(code: int = 0, out: str = "", err: str = "", *, ending: Any = "exited", words: bool = False) -> HookAnswer:
    return answer_of(Finished(code, out + err, ending=ending), out, err, words_are_context=words)


def specific(**values: Any) -> str:
    return json.dumps({"hookSpecificOutput": values})


GONE = "python3: can't open file '/home/me/.claude/hooks/x.py': [Errno 2] No such file or directory"


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [
        (answered(), HookAnswer()),
        (answered(out="words"), HookAnswer()),
        (answered(out="words", words=True), HookAnswer(context="words")),
        (answered(2, err="no tabs\n"), HookAnswer(denied="no tabs")),
        (answered(2, out="no tabs"), HookAnswer(denied="no tabs")),
        (answered(2), HookAnswer(denied="no reason given")),
        (answered(2, err=GONE), HookAnswer(problem=f"exit code 2: {GONE}")),
        (answered(1, err="boom\nmore"), HookAnswer(problem="exit code 1: boom")),
        (answered(127), HookAnswer(problem="exit code 127")),
        (answered(137, ending="timeout"), HookAnswer(problem="timeout")),
        (answered(2, err="x", ending="timeout"), HookAnswer(problem="timeout")),
        (answered(out=specific(permissionDecision="deny", permissionDecisionReason="r")), HookAnswer(denied="r")),
        (answered(out=specific(permissionDecision="allow")), HookAnswer()),
        (answered(out=specific(permissionDecision="ask")), HookAnswer(asks=True)),
        (answered(out='{"decision": "block", "reason": "r"}'), HookAnswer(denied="r")),
        (answered(out='{"decision": "approve", "reason": "r"}'), HookAnswer()),
        (answered(out='{"continue": false, "stopReason": "r"}'), HookAnswer(denied="r")),
        (answered(out=specific(additionalContext="c")), HookAnswer(context="c")),
        (answered(out='{"systemMessage": "m"}'), HookAnswer(notice="m")),
        (answered(out="{broken", words=True), HookAnswer(context="{broken")),
        (answered(out="{broken"), HookAnswer(problem=UNREADABLE)),
        (answered(out='{"decision": "block", "reason": "a\nb"}'), HookAnswer(denied="a\nb")),
        (answered(out='checking\n  {"decision": "block", "reason": "r"}\n'), HookAnswer(denied="r")),
        (
            answered(out='{"systemMessage": "m"}\n{"decision": "block", "reason": "r"}'),
            HookAnswer(denied="r", notice="m"),
        ),
        (answered(out='{"systemMessage": "m"} {"decision": "block"}'), HookAnswer("no reason given", notice="m")),
        (answered(out='{"a": 1}', words=True), HookAnswer()),
        (answered(out="{}\n"), HookAnswer()),
        (
            answered(out='read:\n[{"reason": "review_requested"}]', words=True),
            HookAnswer(context='read:\n[{"reason": "review_requested"}]'),
        ),
        (answered(out='{"decision": 7, "hookSpecificOutput": []}'), HookAnswer()),
        (answered(2, err="a\x1b[31mred"), HookAnswer(denied="ared")),
    ],
)
def test_what_an_answer_means(answer: HookAnswer, wanted: HookAnswer) -> None:
    assert answer == wanted


def test_long_words_are_cut() -> None:
    assert len(answered(out="x" * 100_000, words=True).context) == 10_000
