"""Work-done progress as every client sees it."""

from __future__ import annotations

import time
from typing import Any

from tests.clock import sooner_than
from tests.server.conftest import StartEditor
from tests.server.rawclient import Refusal
from tests.server.replies import call, say
from tests.server.stock_editor import STOCK, StockEditor


def values(editor: StockEditor) -> list[dict[str, Any]]:
    return [params["value"] for params in editor.notifications("$/progress")]


def test_begin_reports_end_with_what_is_done(start: StartEditor) -> None:
    editor = start(call("grep", pattern="needle"), say("Done.", delay=0.3))
    run_id = editor.command("codeagent.run", task="look for\nthe needle")["runId"]
    end = editor.ended(run_id)
    seen = values(editor)
    assert seen[0] == {**seen[0], "kind": "begin", "title": "look for the needle", "cancellable": True}
    assert any("grep needle" in (value.get("message") or "") for value in seen)
    assert not any("percentage" in value for value in seen)
    assert end == {"kind": "end", "message": "Done."}
    assert [value["kind"] for value in seen].count("begin") == 1


def test_a_client_that_refuses_the_token_hears_no_more_of_it(start: StartEditor) -> None:
    editor = start(say("Hello."), answers={"window/workDoneProgress/create": lambda params: Refusal(-32601)})
    editor.command("codeagent.run", task="hello")
    editor.told("Hello.")
    assert values(editor) == []


def test_a_client_that_answers_late_still_gets_begin_and_end(start: StartEditor) -> None:
    def slowly(params: dict[str, Any]) -> None:
        time.sleep(0.4)

    editor = start(say("Hello."), answers={"window/workDoneProgress/create": slowly})
    run_id = editor.command("codeagent.run", task="hello")["runId"]
    assert editor.ended(run_id) == {"kind": "end", "message": "Done."}
    begin, *reports = (value["kind"] for value in values(editor))
    assert begin == "begin" and set(reports) <= {"report"}, "a slow run still has something to say when it may"


def test_many_words_are_at_most_ten_reports_a_second(start: StartEditor) -> None:
    editor = start(say("word " * 400, chunks=200, delay=0.002))
    before = time.monotonic()
    run_id = editor.command("codeagent.run", task="talk")["runId"]
    editor.ended(run_id)
    reports = [value for value in values(editor) if value["kind"] == "report"]
    assert len(reports) <= 10 * (time.monotonic() - before) + 2


def test_a_cancel_of_an_unknown_token_harms_nothing(start: StartEditor) -> None:
    editor = start(say("Hello."))
    for token in ("nothing", 7, "codeagent-"):
        editor.client.notify("window/workDoneProgress/cancel", {"token": token})
    assert editor.run("codeagent.run", task="hello")["message"] == "Done."


def test_cancel_by_token_ends_within_a_second_and_a_second_one_is_fine(start: StartEditor) -> None:
    editor = start(say("Slow.", delay=30))
    run_id = editor.command("codeagent.run", task="think")["runId"]
    token = {"token": f"codeagent-{run_id}"}
    editor.wait_until(lambda: bool(values(editor)))
    with sooner_than(25, "the model answers"):
        editor.client.notify("window/workDoneProgress/cancel", token)
        editor.client.notify("window/workDoneProgress/cancel", token)
        assert editor.ended(run_id)["message"] == "Cancelled."
    assert editor.close() == 0


def test_an_error_ends_with_its_sentence_and_is_shown(start: StartEditor) -> None:
    editor = start(say("", error="timeout"), {"loop": True}, settings={"model": {"timeoutSeconds": 1}})
    end = editor.run("codeagent.run", task="hello")
    assert end["message"] not in ("", "Done.", "Failed.")
    assert editor.told(end["message"])


def test_without_progress_the_answer_is_still_shown(start: StartEditor) -> None:
    editor = start(say("Hello."), capabilities={**STOCK, "window": {}})
    editor.command("codeagent.run", task="hello")
    editor.told("Hello.")
    assert not editor.notifications("window/workDoneProgress/create")


def test_a_long_answer_opens_by_itself_without_the_focus(start: StartEditor) -> None:
    asked: list[dict[str, Any]] = []

    def show(params: dict[str, Any]) -> dict[str, bool]:
        asked.append(params)
        return {"success": True}

    editor = start(say("A line.\n" * 30), answers={"window/showDocument": show})
    editor.run("codeagent.run", task="talk")
    editor.wait_until(lambda: bool(asked))
    assert asked[0]["takeFocus"] is False
    assert "/said/" in asked[0]["uri"]


def test_a_client_that_shows_no_documents_is_told_where_they_are(start: StartEditor) -> None:
    editor = start(say("A line.\n" * 30), capabilities={**STOCK, "window": {"workDoneProgress": True}})
    editor.run("codeagent.run", task="talk")
    assert editor.told("/said/")


def test_leaving_ends_the_progress(start: StartEditor) -> None:
    editor = start(say("Slow.", delay=30))
    run_id = editor.command("codeagent.run", task="think")["runId"]
    editor.wait_until(lambda: bool(values(editor)))
    assert editor.close() == 0
    assert editor.ended(run_id, 0.5)["message"] == "Cancelled."
