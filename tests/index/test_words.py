"""Identifiers split, words stemmed, and what a question names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeagent_lsp.index.words import (
    LONGEST_WORD,
    STOP_WORDS,
    as_word,
    count_words,
    is_name,
    question,
    split,
    stem,
    words_of,
)


@pytest.mark.parametrize(
    ("token", "parts"),
    [
        ("parse_config", ("pars", "config")),
        ("parseConfig", ("pars", "config")),
        ("HTTPServer", ("http", "server")),
        ("getHTTPResponseCode", ("get", "http", "respons", "cod")),
        ("HTTPServer_v2", ("http", "server", "v", "2")),
        ("utf8_decode", ("utf", "8", "decod")),
        ("__init__", ("init",)),
        ("SCREAMING_CASE", ("scream", "cas")),
        ("x", ("x",)),
        ("self", ()),
        ("日志文件", ("日志", "志文", "文件")),
        ("错", ("错",)),
        ("größeMessen", ("größe", "messen")),
        ("читать_файл", ("читать", "файл")),
    ],
)
def test_an_identifier_is_split_into_its_words(token: str, parts: tuple[str, ...]) -> None:
    assert tuple(words_of(token)) == parts
    assert split(token) == parts


@pytest.mark.parametrize(
    "forms",
    [
        ("parse", "parses", "parsed", "parsing"),
        ("query", "queries"),
        ("stop", "stops", "stopped", "stopping"),
        ("cache", "caches", "cached", "caching"),
        ("edit", "edits", "edited", "editing"),
        ("call", "calls", "called", "calling"),
        ("process", "processing"),
        ("settings", "setting"),
    ],
)
def test_the_forms_of_a_word_are_one(forms: tuple[str, ...]) -> None:
    assert len({stem(form) for form in forms}) == 1


@pytest.mark.parametrize("word", ["class", "status", "this", "need", "http", "api", "ring", "bed"])
def test_short_words_and_false_endings_are_left_alone(word: str) -> None:
    assert stem(word) == word


def test_languages_stand_side_by_side() -> None:
    assert list(words_of("修复parse函数")) == ["修复", "pars", "函数"]


def test_words_come_in_order_without_stop_words() -> None:
    assert list(words_of("The parser fails on empty files")) == ["parser", "fail", "empty", "fil"]
    assert list(words_of("修复 parser 的错误")) == ["修复", "parser", "的错", "错误"]


def test_words_are_counted_and_identifiers_count_as_wholes_too() -> None:
    counts = count_words("parse_config(parse_config, config)")

    assert counts == {"pars": 2, "config": 3, "_parse_config": 2}


@pytest.mark.parametrize("token", ["parse_config", "parseConfig", "HTTPServer", "__init__"])
def test_identifiers_are_told_from_words(token: str) -> None:
    assert is_name(token)
    assert as_word(token) == "_" + token.lower().strip("_")


@pytest.mark.parametrize("token", ["parse", "Parse", "HTTP", "x", "a1"])
def test_words_are_not_identifiers(token: str) -> None:
    assert not is_name(token)
    assert as_word(token) == ""


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("fix src/app/models.py please", "src/app/models.py"),
        ("in models.py, the", "models.py"),
        ("see `app/views.ts`.", "app/views.ts"),
        ("look at ./pkg/a-b/c.go:12", "./pkg/a-b/c.go"),
        ("under src/flask/json/ everything", "src/flask/json"),
        ("C:\\code\\app\\main.cs broke", "C:/code/app/main.cs"),
        ('  File "/srv/app/tool.py", line 3, in run', "/srv/app/tool.py"),
        ("    at Object.run (lib/tool.js:12:5)", "lib/tool.js"),
        ("修改src/main.py中的错误", "src/main.py"),
    ],
)
def test_a_question_names_paths(text: str, path: str) -> None:
    paths = question(text).paths

    assert path in paths or path.removeprefix("./") in paths, paths


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("`Widget` is wrong", "Widget"),
        ("calling run() fails", "run"),
        ("see app.Config.load", "load"),
        ("Foo::bar is slow", "bar"),
        ("the parse_config function", "parse_config"),
        ("useEffectOnce leaks", "useEffectOnce"),
        ('  File "/srv/app/tool.py", line 3, in run_all', "run_all"),
        ("    at Object.runAll (lib/tool.js:12:5)", "runAll"),
    ],
)
def test_a_question_names_identifiers(text: str, name: str) -> None:
    assert name in question(text).names


def test_plain_prose_names_nothing() -> None:
    asked = question("Please make the output a little nicer and faster")

    assert asked.paths == ()
    assert asked.names == ()
    assert dict(asked.words).keys() == {"mak", "output", "littl", "nicer", "faster"}


def test_the_words_of_a_question_are_counted() -> None:
    assert dict(question("cache the cache, clear caches").words) == {"cach": 3, "clear": 1}


def test_only_the_beginning_of_a_very_long_question_is_read() -> None:
    asked = question("word " * 5_000 + "needle")

    assert dict(asked.words).keys() == {"word"}


@given(st.text(max_size=300))
def test_any_text_gives_words_that_the_index_can_hold(text: str) -> None:
    for word in words_of(text):
        assert word
        assert word not in STOP_WORDS or stem(word) == word
        assert len(word) <= LONGEST_WORD
        assert not set(word) & set("\"' \t\n(){}*")


@given(st.text(max_size=300))
def test_a_question_can_be_made_of_any_text(text: str) -> None:
    asked = question(text)

    assert all(count > 0 for _, count in asked.words)
    assert len(set(asked.names)) == len(asked.names)
