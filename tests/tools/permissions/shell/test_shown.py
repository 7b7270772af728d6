"""A command as it is shown before it is approved: exactly, with nothing out of sight."""

from __future__ import annotations

import pytest

from codeagent_lsp.tools.permissions.shell_policy import judge, shown


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("ls -la", "ls -la"),
        ("cat a\n\tb", "cat a\n\tb"),
        ("ls \u202e;touch a", "ls <U+202E>;touch a"),
        ("ls\u200b\u00a0\ufeff", "ls<U+200B><U+00A0><U+FEFF>"),
        ("ls\x1b[2K\r\x00", "ls<U+001B>[2K<U+000D><U+0000>"),
        ("a\U000e0041\ufe0f\u3164\u2028", "a<U+E0041><U+FE0F><U+3164><U+2028>"),
        ("echo '文档' é 🙂", "echo '文档' é 🙂"),
        ("ls" + " " * 5_000 + "; touch a", "ls<U+0020 x 5000>; touch a"),
        ("ls" + "\n" * 90 + "touch a", "ls<U+000A x 90>touch a"),
        ("\ud800", "<U+D800>"),
    ],
)
def test_what_is_not_seen_is_named(command: str, expected: str) -> None:
    assert shown(command, 1_000) == expected


def test_a_long_command_shows_its_head_and_its_tail() -> None:
    text = shown("first " + "middle " * 10_000 + "last", 200)
    assert text.startswith("first ")
    assert text.endswith(" last")
    assert "more" in text
    assert len(text) < 250


@pytest.mark.parametrize("char", ["\u00a0", "\u00ad", "\u115f", "\u2003", "\u2066", "\ue000"])
def test_a_hidden_character_asks_also_in_quotes_and_where_a_rule_allows_all(char: str) -> None:
    judgement = judge(f"echo 'a{char}b'", allow=("*",))
    assert judgement.decision == "ask"
    assert f"<U+{ord(char):04X}>" in judgement.reasons[0]


def test_a_control_character_is_refused_wherever_it_is_and_whatever_a_rule_allows() -> None:
    for code in (*range(32), *range(0x7F, 0xA0)):
        for command in (f"echo 'a{chr(code)}b'", f"{chr(code)}ls", f"ls{chr(code)}", f"bash -c 'ls {chr(code)}'"):
            judgement = judge(command, allow=("*",))
            refused = chr(code) not in "\t\n"
            assert (judgement.decision == "deny") == refused, ascii(command)
            assert not refused or f"<U+{code:04X}>" in judgement.reasons[0]
