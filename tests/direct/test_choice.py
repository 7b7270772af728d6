"""Which form is taken: proved ones first, then by size and language; a refused one last."""

from __future__ import annotations

import pytest

from codeagent_lsp.direct import TextForm
from codeagent_lsp.direct.aptitude import Proof, Score
from codeagent_lsp.direct.question import LONG_FILES, Subject, choose_form, preferred_forms

BAD, GOOD = Score(0, 3), Score(3, 3)
ALL = Proof({"tools": BAD, "whole": GOOD, "function": GOOD, "line": Score(1, 3), "blocks": GOOD, "diff": GOOD})

SUBJECTS: dict[str, tuple[Subject, TextForm]] = {
    "a known language": (Subject(300, True, 2048), "function"),
    "another language": (Subject(300, False, 2048), "whole"),
    "a long file of another language": (Subject(LONG_FILES + 1, False, 8192), "blocks"),
    "something wrong that a test sees": (Subject(300, True, 2048, checked_repair=True), "line"),
    "shown in parts": (Subject(100, True, 2048, shown_whole=False), "function"),
    "no room for it whole": (Subject(600, False, 700), "blocks"),
    "nothing fits but blocks": (Subject(9000, False, 2048, shown_whole=False), "blocks"),
    "no file yet": (Subject(0, False, 2048), "whole"),
}


@pytest.mark.parametrize("name", SUBJECTS)
def test_by_size_and_language(name: str) -> None:
    subject, form = SUBJECTS[name]
    assert choose_form(ALL, subject) == form


def test_what_the_model_has_proved_comes_first() -> None:
    proof = Proof({"whole": BAD, "function": BAD, "blocks": GOOD})
    assert choose_form(proof, Subject(100, True, 2048)) == "blocks"


def test_a_refused_form_is_not_asked_for_again_while_there_is_another() -> None:
    subject = Subject(100, True, 2048)
    order = preferred_forms(ALL, subject)
    assert [choose_form(ALL, subject, order[:count]) for count in range(len(order))] == list(order)
    assert choose_form(ALL, subject, order) == order[0]


@pytest.mark.parametrize("tokens", [0, 10, 700, 701, 1700, 5000, 100_000])
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("reply", [256, 2048, 8192])
def test_a_file_is_asked_for_whole_only_where_the_reply_can_hold_it(tokens: int, reply: int, *, known: bool) -> None:
    for proof in (ALL, Proof({"whole": GOOD})):
        forms = preferred_forms(proof, Subject(tokens, known, reply))
        assert forms
        assert "whole" not in forms or tokens < reply
        assert "function" not in forms or known
