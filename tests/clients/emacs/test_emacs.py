"""A real Emacs with eglot and with lsp-mode: tasks, prompts, undo, cancel, questions, actions, typing meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.emacs.support import MARKS, Emacs, has_client, play
from tests.clients.neovim.support import SOURCE, call, edit, with_hook_and_picture
from tests.inline.fill_server import fill_server

pytestmark = MARKS

# How a user asks each client for code actions.
ACTIONS = {
    "eglot": "(call-interactively #'eglot-code-actions)",
    "lsp-mode": "(call-interactively #'lsp-execute-code-action)",
}


@pytest.mark.journey
def test_a_run_changes_the_unsaved_buffer_and_not_the_disk(emacs: Emacs) -> None:
    played = emacs.play(
        """
        (rig-open "a.py")
        (rig-type 1 "# mine")
        (codeagent-run "change it")
        (rig-has "return 4")
        (list :text (rig-text) :modified (buffer-modified-p))
        """,
        files={"a.py": SOURCE},
        script=[call("read_file", path="a.py"), edit("return 3", "return 4"), {"text": "Changed."}],
    )
    assert played.found["text"] == "# mine\n" + SOURCE.replace("return 3", "return 4")
    assert played.found["modified"]
    assert played.disk("a.py") == SOURCE
    assert played.asked() == [["Review", "Apply", "Discard"]]
    assert "Apply changes to a.py" in played.prompts[0]["prompt"]


def test_one_undo_of_emacs_takes_an_edit_back(emacs: Emacs) -> None:
    played = emacs.play(
        """
        (rig-open "a.py")
        (buffer-enable-undo)
        (rig-type 1 "# mine")
        (codeagent-run "change it")
        (rig-has "return 4")
        (let ((changed (rig-text)))
          (undo-boundary)
          (undo)
          (list :changed changed :text (rig-text)))
        """,
        files={"a.py": SOURCE},
        script=[edit("return 1\n", "return 4\n"), edit("return 3", "return 6"), {"text": "Changed."}],
    )
    assert played.found["changed"] == "# mine\n" + SOURCE.replace("return 1", "return 4").replace(
        "return 3", "return 6"
    )
    assert played.found["text"] == "# mine\n" + SOURCE


def test_the_undo_of_the_agent_keeps_what_was_typed_later(emacs: Emacs) -> None:
    played = emacs.play(
        """
        (rig-open "a.py")
        (codeagent-run "change it")
        (rig-has "return 4")
        (rig-type 1 "# later")
        (rig-pass 0.8)
        (codeagent-undo)
        (rig-has "return 3")
        (rig-heard "Undone")
        (list :text (rig-text))
        """,
        files={"a.py": SOURCE},
        script=[edit("return 3", "return 4"), {"text": "Changed."}],
    )
    assert played.found["text"] == "# later\n" + SOURCE


def test_one_change_is_applied_and_the_other_discarded_where_they_are(emacs: Emacs, client: str) -> None:
    played = emacs.play(
        f"""
        (rig-open "a.py")
        (setq rig-answer #'ignore)
        (codeagent-run "change both")
        (rig-wait "the question" 40 (lambda () rig-prompts))
        (rig-wait "the changes" 40 (lambda () (string-search "changes" (json-encode (rig-ask "pending")))))
        (let ((answers (list "apply this change" "discard this change")))
          (setq rig-answer (lambda (_prompt titles) (rig-title titles (pop answers))))
          (goto-char (point-min))
          (search-forward "return 1")
          {ACTIONS[client]}
          (rig-has "return 10")
          (rig-heard "Applied 1")
          (search-forward "return 3")
          {ACTIONS[client]}
          (rig-wait "nothing" 20 (lambda () (not (string-search "changes" (json-encode (rig-ask "pending")))))))
        (list :text (rig-text))
        """,
        files={"a.py": SOURCE},
        script=[edit("return 1", "return 10"), edit("return 3", "return 30"), {"text": "Changed."}],
    )
    assert played.found["text"] == SOURCE.replace("return 1", "return 10")


def test_what_the_user_types_while_the_question_is_open_stays(emacs: Emacs) -> None:
    played = emacs.play(
        """
        (rig-open "a.py")
        (setq rig-answer (lambda (&rest _)
                           (with-current-buffer "a.py" (rig-type 1 "# typed meanwhile"))
                           "Apply"))
        (codeagent-run "change it")
        (rig-wait "the question" 40 (lambda () rig-prompts))
        (rig-pass 2)
        (rig-ask "pending")
        (list :text (rig-text))
        """,
        files={"a.py": SOURCE},
        script=[edit("return 3", "return 4"), {"text": "Changed."}],
    )
    typed = "# typed meanwhile\n"
    assert played.found["text"] in (typed + SOURCE.replace("return 3", "return 4"), typed + SOURCE)
    assert played.disk("a.py") == SOURCE


def test_what_the_user_types_between_task_and_question_stays(emacs: Emacs) -> None:
    played = emacs.play(
        """
        (rig-open "a.py")
        (codeagent-run "change it")
        (rig-type 1 "# typed meanwhile")
        (rig-has "return 4")
        (list :text (rig-text))
        """,
        files={"a.py": SOURCE},
        script=[edit("return 3", "return 4"), {"text": "Changed.", "delay": 1.5}],
    )
    assert played.found["text"] == "# typed meanwhile\n" + SOURCE.replace("return 3", "return 4")


def test_quitting_the_question_changes_nothing_and_a_code_action_decides_later(tmp_path: Path) -> None:
    """Not with lsp-mode: a quit there loses what else the server said in the same moment (docs/editors.md)."""
    if not has_client("eglot"):
        pytest.skip("this Emacs has no eglot")
    played = play(
        tmp_path,
        "eglot",
        f"""
        (rig-open "a.py")
        (setq rig-answer #'ignore)
        (codeagent-run "change it")
        (rig-wait "the question" 40 (lambda () rig-prompts))
        (rig-pass 1)
        (let ((kept (rig-text)))
          (setq rig-answer (lambda (_ titles)
                             (rig-title titles "· Apply")))
          {ACTIONS["eglot"]}
          (rig-has "return 4")
          (list :kept kept :text (rig-text)))
        """,
        files={"a.py": SOURCE},
        script=[edit("return 3", "return 4"), {"text": "Changed."}],
    )
    assert played.found["kept"] == played.disk("a.py") == SOURCE
    assert played.found["text"] == SOURCE.replace("return 3", "return 4")


def test_the_actions_of_a_selection_are_listed_and_one_is_run(emacs: Emacs) -> None:
    played = emacs.play(
        f"""
        (rig-open "a.py")
        (rig-region 5 6)
        (setq rig-answer (lambda (_ titles)
                           (or (rig-title titles "Refactor") "Apply")))
        {ACTIONS[emacs.client]}
        (rig-has "return 22")
        (list :text (rig-text))
        """,
        files={"a.py": SOURCE},
        script=[{"text": "```python\ndef two():\n    return 22\n```"}],
    )
    assert played.found["text"] == SOURCE.replace("return 2\n", "return 22\n")
    listed = " ".join(played.asked()[0])
    for title in ("Explain", "Fix", "Refactor", "Add documentation", "Add tests", "Edit with an instruction"):
        assert title in listed, listed


def test_a_question_is_answered(emacs: Emacs) -> None:
    played = emacs.play(
        """
        (rig-open "a.py")
        (setq rig-answer (lambda (_ titles)
                           (if (member "Blue" titles) "Blue" "Apply")))
        (codeagent-run "ask me")
        (rig-heard "Thank you")
        (list :text (rig-text))
        """,
        files={"a.py": SOURCE},
        script=[
            call("AskUser", questions=[{"text": "Which colour?", "options": ["Red", "Blue"]}], format="single"),
            {"text": "Thank you."},
        ],
    )
    assert "Which colour?" in played.prompts[0]["prompt"]
    assert played.prompts[0]["titles"][:2] == ["Red", "Blue"]
    assert played.found["text"] == SOURCE


def test_a_cancel_ends_the_run_and_keeps_the_text(emacs: Emacs) -> None:
    played = emacs.play(
        """
        (rig-open "a.py")
        (codeagent-run "change it")
        (rig-wait "the edit" 40 (lambda ()
          (string-search "edit_file" (json-encode (ignore-errors (rig-ask "session.export"))))))
        (rig-pass 1)
        (let ((before (float-time)))
          (codeagent-cancel)
          (let ((pending (rig-wait "the changes" 40 (lambda () (append (rig-ask "pending") nil)))))
            (list :seconds (- (float-time) before) :text (rig-text) :pending (vconcat pending))))
        """,
        files={"a.py": SOURCE},
        script=[edit("return 3", "return 4"), {"text": "Slow.", "delay": 20}],
    )
    assert played.found["seconds"] < 15, "it does not wait for the words"
    assert [item["kind"] for item in played.found["pending"]] == ["changes"], played.found["pending"]
    assert played.found["text"] == SOURCE


def test_text_beyond_ascii_is_edited_in_the_right_place(emacs: Emacs) -> None:
    source = 'x = "🚀é"; y = "🚀"  # 中文\n' + SOURCE
    played = emacs.play(
        """
        (rig-open "a.py")
        (codeagent-run "change it")
        (rig-has "done")
        (list :text (rig-text))
        """,
        files={"a.py": source},
        script=[edit('y = "🚀"  # 中文', 'y = "done"  # 中文'), {"text": "Changed."}],
    )
    assert played.found["text"] == source.replace('y = "🚀"', 'y = "done"')


def test_a_new_file_is_made(emacs: Emacs) -> None:
    played = emacs.play(
        """
        (rig-open "a.py")
        (codeagent-run "make it")
        (rig-wait "the new file" 40 (lambda () (find-buffer-visiting (expand-file-name "new/b.py" rig-workspace))))
        (rig-wait "its text" 40 (lambda ()
          (string-search "x = 1" (rig-text (find-buffer-visiting (expand-file-name "new/b.py" rig-workspace))))))
        (list :text (rig-text (find-buffer-visiting (expand-file-name "new/b.py" rig-workspace))))
        """,
        files={"a.py": SOURCE},
        script=[call("write_file", path="new/b.py", content="x = 1\n"), {"text": "Made."}],
    )
    assert played.found["text"] == "x = 1\n"


def test_words_to_a_run_and_back_to_before_it(emacs: Emacs) -> None:
    played = emacs.play(
        """
        (rig-open "a.py")
        (codeagent-run "change it")
        (rig-wait "the run" 40 (lambda () (append (rig-ask "runs") nil)))
        (codeagent-steer "three, please")
        (rig-has "return 4")
        (rig-type 1 "# mine")
        (rig-pass 0.8)
        (codeagent-back)
        (rig-has "return 3")
        (list :text (rig-text))
        """,
        files={"a.py": SOURCE},
        script=[
            call("read_file", path="a.py") | {"delay": 2.0},
            edit("return 3", "return 4") | {"expect": "three, please"},
            {"text": "Changed."},
        ],
    )
    assert played.found["text"] == "# mine\n" + SOURCE


def test_a_task_from_a_document_and_the_better_of_two_attempts(emacs: Emacs) -> None:
    played = emacs.play(
        r"""
        (rig-open "a.py")
        (let ((code (current-buffer)) (file nil))
          (codeagent-prompt)
          (rig-wait "the document" 20 (lambda ()
            (setq file (car (ignore-errors ; the server makes and removes folders there
              (directory-files-recursively (getenv "CODEAGENT_STATE_DIR") "^[0-9-]+-[0-9a-f]+\\.md$"))))))
          (rig-pass 0.5)
          (with-temp-buffer
            (insert-file-contents file)
            (goto-char (point-max))
            (insert "make @a.py:1-3 return four")
            (write-region nil nil file nil 'quiet))
          (with-current-buffer code
            (let ((rig-answer (lambda (_prompt titles) (rig-title titles "Send to the agent"))))
              ACTIONS)
            (rig-wait "four" 40 (lambda () (string-search "return 4" (rig-text code))))
            (rig-pass 0.5)
            (codeagent-send "run" (list :task "make it five" :attempts 2))
            (rig-wait "five" 40 (lambda () (string-search "return 5" (rig-text code)))))
          (list :text (rig-text code)))
        """.replace("ACTIONS", ACTIONS[emacs.client]),
        files={"a.py": SOURCE},
        script=[
            edit("return 3", "return 4") | {"expect": "a.py, lines 1-3, as they are now"},
            {"text": "Changed."},
            *[edit("return 4", "return 5")] * 2,
            *[{"text": "Changed again."}] * 2,
        ],
    )
    assert played.found["text"] == SOURCE.replace("return 3", "return 5")
    sent, *decided = played.asked()
    assert "Task: Send to the agent" in sent
    assert len(decided) == 2


TRUSTING = """
(setq rig-answer (lambda (_prompt titles) (car (or (member "Trust this content" titles) (member "Apply" titles)))))
"""


def test_a_task_that_waits_a_command_of_ones_own_and_the_search(tmp_path: Path, client: str) -> None:
    (tmp_path / "ws/.claude/commands").mkdir(parents=True)
    (tmp_path / "ws/.claude/commands/greet.md").write_text("Greet $ARGUMENTS warmly.")
    played = play(
        tmp_path,
        client,
        TRUSTING
        + """
        (rig-open "a.py")
        (codeagent-run "look around")
        (rig-wait "the run" 40 (lambda () (append (rig-ask "runs") nil)))
        (codeagent-run "/greet Ann")
        (rig-wait "both" 40 (lambda () (string-search "Hi Ann." (format "%S" rig-told))))
        (rig-pass 0.5)
        (codeagent-search "warmly")
        (rig-wait "what was found" 40 (lambda () (get-buffer "*agent runs*")))
        (let ((found (rig-text (get-buffer "*agent runs*"))))
          (kill-buffer "*agent runs*")
          (codeagent-search "")
          (rig-wait "all" 40 (lambda () (get-buffer "*agent runs*")))
          (list :found found :all (rig-text (get-buffer "*agent runs*"))))
        """,
        files={"a.py": SOURCE},
        script=[
            call("list_dir", path=".") | {"delay": 2.0},
            {"text": "Looked."},
            {"text": "Hi Ann.", "expect": "Greet Ann warmly."},
        ],
    )
    assert "/greet Ann" in played.found["found"] and "look around" not in played.found["found"]
    assert played.found["all"].count("completed: ") == 2


def test_a_hook_a_mention_a_background_server_and_a_picture(tmp_path: Path, client: str) -> None:
    """The formatter of a project, trusted once; what it formats is in the buffer, the disk is as it was."""
    with_hook_and_picture(tmp_path / "ws")
    played = play(
        tmp_path,
        client,
        TRUSTING
        + """
        (rig-open "a.py")
        (codeagent-run "serve what @a.py:1-2 says")
        (rig-has "x = 4")
        (rig-pass 0.5)
        (codeagent-run "what is in @shot.png")
        (rig-heard "does not see pictures")
        (list :text (rig-text))
        """,
        files={"a.py": SOURCE + "x = 3\n"},
        script=[
            call("run_cmd", command="echo serving; sleep 77.5", background=True, ready="serving")
            | {"expect": "a.py, lines 1-2, as they are now"},
            call("run_beside", command="cat a.py", id="bg1"),
            edit("x = 3", "x=4"),
            {"text": "Served."},
        ],
    )
    assert played.found["text"] == SOURCE + "x = 4\n"
    assert played.disk("a.py") == SOURCE + "x = 3\n"
    assert [prompt["titles"][-1] for prompt in played.prompts] == ["Trust this content", "Discard"]
    assert "sed -i" in played.prompts[0]["prompt"]


def test_a_suggestion_is_an_entry_of_the_completions(tmp_path: Path, client: str) -> None:
    with fill_server(lambda path, body: [" + b", "\n\n"]) as server:
        played = play(
            tmp_path,
            client,
            """
            (rig-open "x.py")
            (setq-local completion-cycle-threshold t)
            (goto-char (point-max))
            (backward-char)
            (rig-wait "the suggestion" 40 (lambda () (completion-at-point) (string-search "a + b" (rig-text))))
            (list :text (rig-text))
            """,
            files={"x.py": "def add(a, b):\n    return a\n"},
            script=[],
            inline=f"qwen2.5-coder-1.5b@{server.url}",
        )
    assert played.found["text"] == "def add(a, b):\n    return a + b\n"
    assert played.disk("x.py") == "def add(a, b):\n    return a\n"
