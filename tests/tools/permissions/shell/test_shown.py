"""Characters of a command that the user would not see in the question about it."""

from __future__ import annotations

import pytest

from codeagent_lsp.tools.permissions.shell_policy import judge


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
