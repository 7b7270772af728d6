"""What a tool says of the user's decision is said otherwise where there is no user."""

from __future__ import annotations

from codeagent_lsp.mcp_server.serving import in_own_words


def test_sentences_about_a_decision_are_put_into_the_sandbox_s_words() -> None:
    assert in_own_words("Staged for the user's decision:\n+x") == "Changed in the sandbox:\n+x"
    assert in_own_words("out\n[exit code 0, 0.1 s]\nStaged from what it wrote: a").endswith("in the sandbox by it: a")
    assert "user" not in in_own_words("(left out, as reading them needs the user's approval: .env)")


def test_the_text_of_files_stays() -> None:
    text = "1|Staged for the user's decision:\n2|print('Not staged:')\n"
    assert in_own_words(text) == text
