"""What the index keeps of a text: no secrets, every line in its place, everything else as it is."""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeagent_lsp.config import IndexSettings
from codeagent_lsp.index.intake import mask_secrets
from codeagent_lsp.index.service import IndexService
from tests.records.formats import TOKENS


@pytest.mark.parametrize("name", TOKENS)
def test_secrets_of_every_format_are_taken_out(name: str) -> None:
    secret = TOKENS[name](random.Random(3))
    text = f"import os\n\ndef one():\n    return 1\n\nkey = '{secret}'\n\n\ndef two():\n    return 2\n"
    found = mask_secrets(text)
    assert secret not in found
    assert "<secret:" in found
    assert found.count("\n") == text.count("\n")
    assert found.startswith("import os\n\ndef one():\n    return 1\n\n")
    assert found.endswith("\n\n\ndef two():\n    return 2\n")


def test_a_key_of_many_lines_leaves_its_lines() -> None:
    body = "\n".join("".join(random.Random(n).choices("abcdefghXYZ0123456789+/", k=64)) for n in range(12))
    kind = "PRIVATE KEY"
    text = f"# before\n-----BEGIN {kind}-----\n{body}\n-----END {kind}-----\n# after\n"
    found = mask_secrets(text)
    assert body.splitlines()[5] not in found
    assert found.splitlines()[-1] == "# after"
    assert found.count("\n") == text.count("\n")


@pytest.mark.parametrize(
    "text",
    [
        "def test_a_function_with_a_long_name_2():\n    return some_module_1.some_other_thing_in_it\n",
        "digest = 'd41d8cd98f00b204e9800998ecf8427e'\n",
        "token = next(tokens)\nsecret = ask_for_secret()\n",
        "URL = 'https://example.com/a/b?c=1'\n",
        "",
    ],
)
def test_what_only_looks_like_one_stays(text: str) -> None:
    assert mask_secrets(text) == text


@given(st.text(alphabet="ab1/+=:@-_ \n\r\tİſ" + "passwordtoken", max_size=300))
def test_any_text_keeps_its_lines(text: str) -> None:
    assert mask_secrets(text).count("\n") == text.count("\n")


async def test_no_secret_is_in_the_file_of_an_index(tmp_path: Path) -> None:
    folder, store = tmp_path / "ws", tmp_path / "index.sqlite"
    folder.mkdir()
    secrets = [secret for make in TOKENS.values() if "\n" not in (secret := make(random.Random(5)))]
    lines = "".join(f"KEY_{number} = '{secret}'\n" for number, secret in enumerate(secrets))
    (folder / "settings.py").write_text(f"{lines}\ndef connect_to_everything():\n    return 1\n")
    index = IndexService([str(folder)], store, IndexSettings())
    try:
        await index.refresh()
        (found,) = index.view().defining("connect_to_everything")
    finally:
        await index.close()
    assert found == "settings.py"
    with sqlite3.connect(store) as base:
        base.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    kept = store.read_bytes()
    assert [secret for secret in secrets if secret.encode() in kept] == []
