"""The loop guard: everything that is going in circles is seen, and nothing that is work."""

from __future__ import annotations

import pytest

from codeagent_lsp.agent.limits import Anomaly, LoopGuard
from tests.clock import processor_seconds

SENTENCE = "I will now look at the file again to be quite sure. "
CHUNK = SENTENCE[:50]


def feed(text: str, step: int = 4) -> Anomaly | None:
    guard = LoopGuard()
    for start in range(0, len(text), step):
        anomaly = guard.observe_text(text[start : start + step])
        if anomaly is not None:
            return anomaly
    return None


# --- calls


def test_the_same_call_with_the_same_result_three_times() -> None:
    guard = LoopGuard()
    assert guard.observe_call("grep", {"pattern": "x"}, "nothing") is None
    assert guard.observe_call("grep", {"pattern": "x"}, "nothing") is None
    anomaly = guard.observe_call("grep", {"pattern": "x"}, "nothing")
    assert anomaly is not None
    assert anomaly.kind == "repeated_call"
    assert "grep" in anomaly.detail


def test_the_order_of_the_arguments_does_not_matter() -> None:
    guard = LoopGuard()
    guard.observe_call("grep", {"a": 1, "b": 2}, "r")
    guard.observe_call("grep", {"b": 2, "a": 1}, "r")
    assert guard.observe_call("grep", {"a": 1, "b": 2}, "r") is not None


@pytest.mark.parametrize("length", [2, 3, 4, 5])
def test_a_cycle_repeated_three_times(length: int) -> None:
    guard = LoopGuard()
    seen = [guard.observe_call(f"tool{turn % length}", {}, "same") for turn in range(3 * length)]
    assert seen[:-1] == [None] * (3 * length - 1)
    assert seen[-1] is not None
    assert seen[-1].kind == "call_cycle"


def test_a_cycle_after_other_work_and_one_with_a_repetition_inside() -> None:
    guard = LoopGuard()
    for number in range(20):
        assert guard.observe_call("read_file", {"path": str(number)}, "text") is None
    seen = [guard.observe_call(name, {}, "r") for name in "AAB" * 3]
    assert seen[-1] is not None
    assert seen[:-1] == [None] * 8


def test_six_calls_are_no_cycle_that_is_looked_for() -> None:
    guard = LoopGuard()
    assert not any(guard.observe_call(f"t{turn % 6}", {}, "r") for turn in range(30))


def test_batch_work_over_fifty_files_is_no_loop() -> None:
    guard = LoopGuard()
    for number in range(50):
        arguments = {"path": f"src/f{number}.py", "old_str": "import a", "new_str": "import b"}
        assert guard.observe_call("edit_file", arguments, "Replaced 1 place.") is None


def test_polling_with_changing_results_is_no_loop() -> None:
    guard = LoopGuard()
    assert not any(guard.observe_call("run_cmd", {"command": "make"}, f"{100 - n} errors") for n in range(60))


def test_two_repetitions_and_then_something_else_are_no_loop() -> None:
    guard = LoopGuard()
    assert not any(guard.observe_call(name, {}, "r") for name in "AABAABBAAB")


def test_results_that_json_cannot_write_do_no_harm() -> None:
    guard = LoopGuard()
    assert guard.observe_call("t", {"path": "\ud800", "x": object}, "\ud800") is None


# --- text that repeats


@pytest.mark.parametrize("step", [1, 2, 3, 4, 7, 25, 49, 50, 51, 500, 100_000])
def test_a_chunk_of_fifty_characters_ten_times(step: int) -> None:
    anomaly = feed(CHUNK * 10, step)
    assert anomaly is not None
    assert anomaly.kind == "repeated_text"


@pytest.mark.parametrize("step", [1, 4, 50])
def test_nine_times_is_not_enough(step: int) -> None:
    assert feed(CHUNK * 9, step) is None


@pytest.mark.parametrize(
    "unit",
    [
        "Wait, let me think about this once more. Actually, no.\n",
        "等一下，让我再想一想这个问题。" * 4,
        "I need to check the configuration file before I can go on with this. " * 3,
        "the same words ",
    ],
)
def test_reasoning_that_turns_in_a_circle(unit: str) -> None:
    assert feed(unit * max(12, 900 // len(unit))) is not None


def test_a_loop_that_begins_after_much_text() -> None:
    prose = " ".join(f"word{number}" for number in range(9000))
    assert feed(prose, 6) is None
    assert feed(prose + CHUNK * 12, 6) is not None


def test_a_loop_with_a_few_fillings_between() -> None:
    text = "".join(f"{SENTENCE * 2} Option {'ab'[number % 2]}. " for number in range(20))
    assert feed(text) is not None


def test_text_of_an_earlier_reply_does_not_count() -> None:
    guard = LoopGuard()
    for _ in range(4):
        assert guard.observe_text(CHUNK * 4) is None
        guard.new_reply()


def test_code_that_never_ends_is_a_loop_too() -> None:
    assert feed("```python\n" + "    value = compute(value, value, value)\n" * 400) is not None


@pytest.mark.parametrize("bracket", "()[]{}<>")
def test_more_than_fifty_brackets_in_a_row(bracket: str) -> None:
    assert feed("x = " + bracket * 50 + ";") is None
    anomaly = feed("x = " + bracket * 51)
    assert anomaly is not None
    assert anomaly.kind == "bracket_run"


@pytest.mark.parametrize("step", [1, 2, 13, 400])
def test_mixed_brackets_in_the_middle_of_a_chunk(step: int) -> None:
    assert feed("a" * 30 + "[{(<" * 13 + "b" * 300, step) is not None


def test_brackets_with_something_between_are_fine() -> None:
    assert feed("} ] ) " * 12 + "\n".join("}" * 5 for _ in range(3))) is None


# --- what is no loop


def rows(line: str, count: int) -> str:
    return "".join(line.format(n=number, m=number * 7919 % 1000) for number in range(count))


LEGITIMATE = {
    "list": rows("- Rename the function in file number {n} and update every caller of it in the tests\n", 60),
    "tasks": rows("- [ ] step {n}: run the whole test suite, look at the failures and fix them all\n", 60),
    "numbered": rows("{n}. The value is checked against the limits and rejected when it is too large.\n", 60),
    "table": rows("| feature {n} | yes | yes | yes | yes | yes | yes | yes | yes | yes | yes | yes |\n", 60),
    "same rows": "| name | kind |\n|---|---|\n" + "| value | the same in every row of this table |\n" * 40,
    "imports": "```python\n" + rows("from company.product.package.subpackage.models import Model{n}\n", 90) + "```\n",
    "imports unfenced": rows("from company.product.package.subpackage.models import Model{m}\n", 90),
    "data": "```python\nTABLE = [\n" + "    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,\n" * 80 + "]\n```\n",
    "one line of zeros": "```c\nint t[] = {" + "0, " * 400 + "};\n```\n",
    "json": rows('{{"id": {n}, "enabled": true, "visible": true, "deleted": false, "archived": false}}\n', 80),
    "progress": "".join(f"[{'#' * n}{'.' * (50 - n)}] {2 * n}%\n" for n in range(51)),
    "bar": "".join(f"\r{'=' * (n // 2)}> {n}/200" for n in range(200)),
    "separators": ("=" * 78 + "\nSection\n" + "-" * 78 + "\n\n") * 3 + "#" * 400,
    "blank": "\n" * 300 + " " * 400,
    "base64": "data: " + "A" * 300,
    "cases": "```go\n" + rows("\tcase {n}:\n\t\treturn handle(ctx, request, response, nil)\n", 60) + "```\n",
    "asserts": "```python\n" + rows("    assert parse('{n}') == Result(value={n}, rest='', error=None)\n", 80) + "```",
    "diff": rows("-    logger.debug('value %s', value_{n})\n+    logger.info('value %s', value_{n})\n", 60),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LEGITIMATE)
@pytest.mark.parametrize("step", [1, 4, 50, 1000])
def test_what_repeats_by_nature_is_no_loop(name: str, step: int) -> None:
    assert feed(LEGITIMATE[name], step) is None


@pytest.mark.slow
def test_a_fence_is_followed_across_pieces_and_beyond_the_window() -> None:
    long_before = rows("line {n} of a long explanation that nobody needs, with the number {m}\n", 300)
    code = "```text\n" + rows("x{n}\n", 3000) + "0, 0, 0, 0, 0, 0, 0, 0,\n" * 60 + "```\n"
    assert feed(long_before + code, 1) is None


@pytest.mark.slow
def test_a_megabyte_in_small_chunks_is_fast() -> None:
    text = " ".join(f"w{number * 7919 % 99991}" for number in range(160_000))[:1_000_000]
    with processor_seconds(8.0):
        assert feed(text, 4) is None
