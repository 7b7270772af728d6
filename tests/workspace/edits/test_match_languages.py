"""Every tier in every language: the same edit, perturbed in one way, must come out as if it had been exact."""

from __future__ import annotations

import pytest

from codeagent_lsp.workspace.edits.match import Replacement, replace
from codeagent_lsp.workspace.text.position import split_lines
from tests.workspace.edits.test_match import refusal
from tests.workspace.language_samples import GO, MAKEFILE, PYTHON, SAMPLES, TYPESCRIPT, YAML, Sample

EACH = pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES.keys())


def crlf(text: str) -> str:
    return text.replace("\n", "\r\n")


def indent_of(block: str) -> str:
    """The indentation that all lines of a block have in common."""
    lines = [line for line in split_lines(block) if line.strip()]
    widths = [len(line) - len(line.lstrip(" \t")) for line in lines]
    return lines[0][: min(widths)]


def dedented(block: str, common: str) -> str:
    return "".join(line.removeprefix(common) for line in split_lines(block))


def deeper(block: str, by: str) -> str:
    return "".join(by + line if line.strip() else line for line in split_lines(block))


def trailing(block: str, blanks: str = "  ") -> str:
    return block.replace("\n", blanks + "\n")


@EACH
def test_exact(sample: Sample) -> None:
    assert replace(sample.text, sample.old, sample.new) == Replacement(sample.expected, "exact")


@EACH
def test_exact_without_the_final_newline_of_both(sample: Sample) -> None:
    done = replace(sample.text, sample.old.removesuffix("\n"), sample.new.removesuffix("\n"))
    assert done == Replacement(sample.expected, "exact")


@EACH
def test_a_crlf_file(sample: Sample) -> None:
    assert replace(crlf(sample.text), sample.old, sample.new) == Replacement(crlf(sample.expected), "line_ends")


@EACH
def test_a_crlf_edit(sample: Sample) -> None:
    done = replace(sample.text, crlf(sample.old), crlf(sample.new))
    assert done == Replacement(sample.expected, "line_ends")


@EACH
def test_a_mark_and_no_final_newline(sample: Sample) -> None:
    text = "\ufeff" + sample.text.removesuffix("\n")
    assert replace(text, sample.old, sample.new).text == "\ufeff" + sample.expected.removesuffix("\n")


@EACH
@pytest.mark.parametrize("blanks", ["  ", "\t", " \t "])
def test_trailing_blanks_in_the_edit(sample: Sample, blanks: str) -> None:
    done = replace(sample.text, trailing(sample.old, blanks), sample.new)
    assert done == Replacement(sample.expected, "trailing_blanks")
    both = replace(sample.text, trailing(sample.old, blanks), trailing(sample.new, blanks))
    assert both.text == sample.expected


@EACH
def test_trailing_blanks_in_the_file_stay_on_lines_that_stay(sample: Sample) -> None:
    first = split_lines(sample.old)[0]
    text = sample.text.replace(first, trailing(first))
    done = replace(text, sample.old, sample.new)
    assert done == Replacement(sample.expected.replace(first, trailing(first)), "trailing_blanks")


@EACH
def test_the_block_at_the_left_margin(sample: Sample) -> None:
    common = indent_of(sample.old)
    done = replace(sample.text, dedented(sample.old, common), dedented(sample.new, common))
    assert done == Replacement(sample.expected, "indentation" if common else "exact")


@EACH
def test_the_block_too_deep(sample: Sample) -> None:
    unit = "\t" if "\t" in sample.text else "    "
    done = replace(sample.text, deeper(sample.old, unit), deeper(sample.new, unit))
    assert done == Replacement(sample.expected, "indentation")


@EACH
def test_the_file_as_a_whole_deeper(sample: Sample) -> None:
    unit = "\t" if "\t" in sample.text else "  "
    done = replace(deeper(sample.text, unit), sample.old, sample.new)
    assert done.text == deeper(sample.expected, unit)


@EACH
def test_a_blank_line_before_and_after(sample: Sample) -> None:
    """The edit has blank lines around the block in both halves; the file's own ones are neither lost nor doubled."""
    text = "before\n" + sample.text + "after\n"
    done = replace(text, "\n" + sample.old, "\n" + sample.new)
    assert done.text == text.replace(sample.old, sample.new)


@EACH
def test_a_slip_in_a_line_that_stays(sample: Sample) -> None:
    right, wrong = sample.typo
    done = replace(sample.text, sample.old.replace(right, wrong), sample.new)
    assert done == Replacement(sample.expected, "typo")
    both = replace(sample.text, sample.old.replace(right, wrong), sample.new.replace(right, wrong))
    assert both == Replacement(sample.expected, "typo")


@EACH
def test_two_slips_are_too_many(sample: Sample) -> None:
    right, wrong = sample.typo
    lines = split_lines(sample.old.replace(right, wrong))
    other = next(i for i, line in enumerate(lines) if wrong not in line and len(line.strip()) > 6)
    lines[other] = lines[other].replace(lines[other].strip()[2:4], lines[other].strip()[2:4][::-1] + "q", 1)
    assert refusal(sample.text, "".join(lines), sample.new).reason == "not_found"


@EACH
@pytest.mark.parametrize("odd", ["\x0b", "\x0c", "\x85", "\u2028", "\u2029", "\x1c"])
def test_odd_separators_around_and_inside(sample: Sample, odd: str) -> None:
    first = split_lines(sample.old)[0]
    marked = first.replace("\n", f" {odd}x\n")
    text = f"{odd}\n" + sample.text.replace(first, marked)
    done = replace(text, trailing(sample.old.replace(first, marked)), sample.new.replace(first, marked))
    assert done.text == f"{odd}\n" + sample.expected.replace(first, marked)


@EACH
def test_mixed_line_ends_outside_the_change_stay(sample: Sample) -> None:
    lines = split_lines(sample.text)
    text = "".join(crlf(line) if number % 2 else line for number, line in enumerate(lines))
    result = replace(text, sample.old, sample.new).text
    assert result.replace("\r\n", "\n") == sample.expected
    kept = len(split_lines(sample.text[: sample.text.index(sample.old)]))
    assert split_lines(result)[:kept] == split_lines(text)[:kept]
    below = len(lines) - kept - len(split_lines(sample.old))
    assert below == 0 or split_lines(result)[-below:] == split_lines(text)[-below:]


@EACH
def test_at_the_very_beginning_and_end(sample: Sample) -> None:
    assert replace(sample.old, sample.old, sample.new).text == sample.new
    assert replace(sample.old + "tail\n", sample.old, sample.new).text == sample.new + "tail\n"
    assert replace("head\n" + sample.old, sample.old, sample.new).text == "head\n" + sample.new
    assert replace(sample.old.removesuffix("\n"), sample.old, sample.new).text == sample.new.removesuffix("\n")


@EACH
def test_deleting_the_block(sample: Sample) -> None:
    assert replace(sample.text, sample.old, "").text == sample.text.replace(sample.old, "")
    assert replace(crlf(sample.text), sample.old, "").text == crlf(sample.text.replace(sample.old, ""))


# --- what must be refused in every language


@EACH
def test_a_second_time(sample: Sample) -> None:
    once = replace(sample.text, sample.old, sample.new).text
    assert refusal(once, sample.old, sample.new).reason == "already_applied"
    common = indent_of(sample.old)
    assert refusal(once, dedented(sample.old, common), dedented(sample.new, common)).reason == "already_applied"
    assert refusal(crlf(once), sample.old, sample.new).reason == "already_applied"
    assert refusal(once, sample.old, sample.new, replace_all=True).reason == "already_applied"


@EACH
def test_the_block_twice(sample: Sample) -> None:
    error = refusal(sample.old + "between\n" + sample.old, sample.old, sample.new)
    assert error.reason == "ambiguous"
    assert f"lines 1, {len(split_lines(sample.old)) + 2}" in str(error)


@EACH
def test_a_line_of_the_block_left_out(sample: Sample) -> None:
    lines = split_lines(sample.old)
    short = "".join([*lines[:1], *lines[2:]])
    error = refusal(sample.text, short, sample.new)
    assert error.reason == "not_found"
    assert lines[1].strip() in str(error)


@EACH
def test_a_line_the_user_put_in(sample: Sample) -> None:
    lines = split_lines(sample.old)
    text = sample.text.replace(sample.old, "".join([*lines[:2], "typed = by_the_user\n", *lines[2:]]))
    error = refusal(text, sample.old, sample.new)
    assert error.reason == "not_found"
    assert "typed = by_the_user" in str(error)


@EACH
@pytest.mark.parametrize("dots", ["...", "# ...", "// ...", "\u2026", "<!-- ... -->"])
def test_dots_for_the_middle(sample: Sample, dots: str) -> None:
    lines = split_lines(sample.old)
    error = refusal(sample.text, "".join([lines[0], dots + "\n", lines[-1]]), sample.new)
    assert error.reason == "not_found"


@EACH
def test_another_language_altogether(sample: Sample) -> None:
    other = next(item for item in SAMPLES.values() if item is not sample)
    error = refusal(sample.text, other.old, other.new)
    assert error.reason == "not_found"
    assert len(str(error)) < 1500


# --- indentation with tabs against blanks, either way


@pytest.mark.parametrize("sample", [GO, MAKEFILE], ids=["go", "makefile"])
@pytest.mark.parametrize("width", [2, 4, 8])
def test_blanks_in_the_edit_where_the_file_has_tabs(sample: Sample, width: int) -> None:
    done = replace(sample.text, sample.old.replace("\t", " " * width), sample.new.replace("\t", " " * width))
    assert done == Replacement(sample.expected, "indentation")


@pytest.mark.parametrize(("sample", "width"), [(PYTHON, 4), (TYPESCRIPT, 2), (YAML, 2)], ids=["python", "ts", "yaml"])
def test_tabs_in_the_edit_where_the_file_has_blanks(sample: Sample, width: int) -> None:
    def tabs(block: str) -> str:
        return block.replace(" " * width, "\t")

    assert replace(sample.text, tabs(sample.old), tabs(sample.new)) == Replacement(sample.expected, "indentation")


def test_a_mix_of_tabs_and_blanks_is_not_guessed() -> None:
    text = "if a:\n\tb()\n    c()\n"
    assert refusal(text, "b()\nc()\n", "d()\nc()\n").reason == "not_found"


# --- replacing all


@EACH
def test_all_exact_places(sample: Sample) -> None:
    text = sample.old + "between\n" + sample.old
    assert replace(text, sample.old, sample.new, replace_all=True).text == sample.new + "between\n" + sample.new


@EACH
def test_all_falls_back_to_the_one_place_of_any_tier(sample: Sample) -> None:
    assert replace(crlf(sample.text), sample.old, sample.new, replace_all=True).text == crlf(sample.expected)
    done = replace(sample.text, trailing(sample.old), sample.new, replace_all=True)
    assert done == Replacement(sample.expected, "trailing_blanks")


@EACH
def test_all_inexact_places_are_refused_rather_than_guessed(sample: Sample) -> None:
    text = crlf(sample.old + "between\n" + sample.old)
    assert refusal(text, sample.old, sample.new, replace_all=True).reason == "ambiguous"
