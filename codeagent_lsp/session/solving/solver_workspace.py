"""Implements the `SolverWorkspace` of one run: files as the run sees them, checks in the shadow, staging, progress
messages.

Not here: the attempts (`direct/solver.py`), when a run works this way (`direct_path.py`).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from pydantic import Field

from codeagent_lsp import events
from codeagent_lsp.agent.context.gather import MOST_FILES
from codeagent_lsp.agent.loop import call_data, result_event
from codeagent_lsp.direct.checks import Checker, CheckPlan, FailedTest, LookingShell, Verdict, satisfied
from codeagent_lsp.direct.gathering import Gatherer, Relevance, Subject
from codeagent_lsp.direct.material import Material, ShownFile, identifiers
from codeagent_lsp.direct.renaming import Rename, home_of, rename_in, renames, still_used
from codeagent_lsp.direct.variants import Repairs, Variant
from codeagent_lsp.direct.workspace_files import WorkspaceFiles
from codeagent_lsp.errors import AgentError, EditRefused
from codeagent_lsp.index.grammars import is_made, is_test
from codeagent_lsp.messages import ToolCall, ToolResult
from codeagent_lsp.session.proving.trial_tests import MOST_CHANGES, may_be_small, passing_changes, trial_place
from codeagent_lsp.session.request import Target
from codeagent_lsp.session.run_parts import RunParts, files_of, hear
from codeagent_lsp.tools.code.source import SourceFile, source_of
from codeagent_lsp.tools.code.splices import applied
from codeagent_lsp.tools.context import OnTested, Tally, ToolContext
from codeagent_lsp.tools.executor import ToolExecutor
from codeagent_lsp.tools.files.edit_tools import EditFile, WriteFile
from codeagent_lsp.tools.registry import ToolRegistry
from codeagent_lsp.tools.testing.reports import Baseline
from codeagent_lsp.tools.tool import Parameters, Tool, ToolOutput
from codeagent_lsp.tools.traits import ToolTraits
from codeagent_lsp.workspace.changes.changeset import Changeset
from codeagent_lsp.workspace.files.file_view import FileText
from codeagent_lsp.workspace.text.excerpts import excerpt
from codeagent_lsp.workspace.text.visible import some_of

MOST_BESIDE = 3
BESIDE_SECONDS = 30.0
NAMED_PLACES = 5
_NO_TEXTS: tuple[Mapping[str, str], Material, str] = ({}, Material(), "")


class _RunWorkspace:
    """The base of both workspaces: the staged state, the checker, and progress messages."""

    def __init__(self, parts: RunParts) -> None:
        self._parts = parts
        self._staging = parts.proposal.staging
        context = parts.toolbox.context().having((Baseline, None))  # this path compares with it by itself
        self._context = replace(context, shell=LookingShell(context.shell)) if context.shell is not None else context
        self._checker = self._checker_on(self._context)

    async def draft(self) -> tuple[Mapping[str, str], Material, str]:
        """Return nothing: every text has to come from the model."""
        return _NO_TEXTS

    async def repairs(self, before: Verdict | None) -> Repairs | None:
        """Return None, as for `draft`."""
        return None

    def repair_told(self, found: Repairs, change: Variant) -> str:
        """Return how the change was found: as the only one, or as the one that the model chose."""
        others = [f"`{each.after}`" for each in found.changes if each is not change]
        words = {"name": found.file.name, "line": change.line, "before": change.before, "after": change.after}
        key = "solve.chosen" if others else "solve.varied"
        return self._parts.output.text(key, count=found.tried, others=", ".join(others), **words)

    def revealed(self, reply: str) -> str:
        """Return a reply with the secrets whose marks it has."""
        return str(self._context.redaction.reveal({"reply": reply})["reply"])

    def staged(self) -> Changeset:
        """Return what is staged now."""
        return self._staging.changeset

    def restore(self, changeset: Changeset) -> None:
        """Restore an earlier staged state; what the user has decided about since stays decided."""
        if changeset != self._staging.changeset:
            self._staging.restore(changeset)

    def diff(self, since: Changeset, limit: int) -> str:
        """Return the diff of the staged changes that the state `since` does not have, at most `limit` characters."""
        now = self.staged()
        changed = now.without([change.path for change in since if now.get(change.path) == change])
        return excerpt(changed.diff(self._parts.proposal.view.roots.relative), limit)

    def heard(self) -> tuple[str, ...]:
        """Return all that the user has said to the run, also in the tool loop or an earlier step."""
        hear(self._parts)
        return tuple(self._parts.record.heard)

    def say(self, key: str, **values: object) -> None:
        """Show the user a sentence of the catalogue as progress."""
        self._parts.output.emit(events.StatusChanged(message=self._parts.output.text(key, **values)))

    def _beside(self, names: Sequence[str]) -> CheckPlan:
        """Return a plan with the tests that belong to these files, if they can run isolated: the task does not mention
        tests, so the user must not be asked for them.
        """
        if self._context.shell is None or not self._context.shell.isolation.complete:
            return CheckPlan()
        return CheckPlan(tests=files_of(self._parts).tests_beside(names)[:MOST_BESIDE], beside=True)

    async def _check(self, plan: CheckPlan, checker: Checker | None = None) -> Verdict | None:
        """Run a plan and return the verdict; None without a shell, and if tests beside the files take over 30 s. The
        checker is usually that of the staged state.
        """
        if self._context.shell is None:
            return None
        try:
            # Tests that the task names may take as long as they need: the result is what was asked for.
            async with asyncio.timeout(BESIDE_SECONDS if plan.beside else None):
                verdict = await (checker or self._checker).run(plan)
        except TimeoutError:
            return None
        finally:
            self._parts.toolbox.close()  # its output is shown before the verdict
        return replace(verdict, binding=not plan.beside) if verdict is not None else None

    def _executor(self, registry: ToolRegistry, context: ToolContext) -> ToolExecutor:
        parts = self._parts
        approvals, language = parts.session.context.approvals, parts.services.user.language()
        return ToolExecutor(registry, context, parts.services.user.mode, approvals, language)

    def _checker_on(self, context: ToolContext) -> Checker:
        return Checker(self._executor(self._parts.services.registry, context), self._parts.output.emit)


class SelectionWorkspace(_RunWorkspace):
    """The workspace of a quick action: the file with the user's selection, as it was then, and with `checks` the tests
    beside it. Staging needs no further permission, as the user has named this place.
    """

    def __init__(self, parts: RunParts, target: Target, *, checks: bool) -> None:
        super().__init__(parts)
        self._file = target.file
        self._name = parts.proposal.view.roots.relative(target.file.path)
        self._checks = checks
        self._plan: CheckPlan | None = None

    async def check(self) -> Verdict | None:
        """Run the tests beside the file; None if there are none or commands cannot run."""
        if self._plan is None:
            self._plan = await asyncio.to_thread(self._beside, [self._name]) if self._checks else CheckPlan()
        return await self._check(self._plan)

    async def gather(self, verdict: Verdict | None, wanted: tuple[str, ...], room: int, *, wide: bool) -> Material:
        """Return the whole file with the selection; `SelectionQuestion` chooses what the model sees of it."""
        return Material((ShownFile(self._name, self._file),))

    async def stage(self, texts: Mapping[str, str], material: Material) -> str:
        """Stage the new text of the file, by its relative path in `texts`; return '', or the reason of a refusal for
        the model.
        """
        try:
            self._staging.write({self._file.path: texts[self._name]}, read=[self._file])
        except EditRefused as refusal:
            return str(refusal)
        return ""


class TaskWorkspace(_RunWorkspace):
    """The workspace of one task. `small` models are shown less of long files."""

    def __init__(self, parts: RunParts, subject: Subject, *, small: bool) -> None:
        super().__init__(parts)
        self._subject = subject
        self._small = small
        self._plan: CheckPlan | None = None
        self._calls = 0

    async def check(self) -> Verdict | None:
        """Run the checks of the task and return their result; None if there are none or commands cannot run. If the
        task is about all uses of a name, a removed name that is still used counts as a failure.
        """
        verdict = await self._check(await self._plan_check())
        if not self._subject.brief.everywhere or not self.staged():
            return verdict
        words = self._subject.brief.words
        left = await asyncio.to_thread(lambda: NameChanges(files_of(self._parts)).left_behind(words, self.staged()))
        if not left:
            return verdict
        # Uses that are left are known by reading; they count even where no test could run.
        known = verdict if verdict is not None and verdict.known else Verdict()
        report = "\n".join(filter(None, (known.report, "Still used, change these too:", *left)))
        return Verdict(
            known.passed, (*known.failed, *(FailedTest(use, use.partition(": ")[2]) for use in left)), report
        )

    async def draft(self) -> tuple[Mapping[str, str], Material, str]:
        """Return, for a rename that the task clearly asks for, the new texts by relative path, made with the syntax
        trees; the files as they were; and a sentence on the places that keep the old name, '' for none. All empty for
        other tasks.
        """
        words = self._subject.brief.words
        asked = rename_in(words)
        if asked is None:  # before the workspace is listed
            return _NO_TEXTS
        texts, material, left = await asyncio.to_thread(lambda: NameChanges(files_of(self._parts)).renamed(words))
        places = some_of(left, NAMED_PLACES)
        return texts, material, self._parts.output.text("solve.left", name=asked.word, places=places) if left else ""

    async def repairs(self, before: Verdict | None) -> Repairs | None:
        """Return the small changes with which the failing tests pass, where the task is a repair; None if it is none,
        or none is found in about 40 s.
        """
        plan = await self._plan_check()
        if before is None or not self._subject.brief.repairs or not may_be_small(before, plan):
            return None
        candidates = await asyncio.to_thread(
            lambda: Gatherer(files_of(self._parts)).small_changes(self._subject, before, MOST_CHANGES)
        )
        if candidates is None or not candidates[1]:
            return None
        file, changes = candidates
        self.say("solve.varying", count=len(changes), name=file.name)
        return await passing_changes(self._parts, file, changes, plan)

    async def gather(self, verdict: Verdict | None, wanted: tuple[str, ...], room: int, *, wide: bool) -> Material:
        """Return, from a thread, the files and other material to show to the model for the task in its present state,
        in at most `room` tokens: also the files that the model has asked for (`wanted`, relative paths), and with
        `wide` definitions that are only related.
        """
        subject = replace(self._subject, wanted=wanted)

        def gathered() -> Material:
            return Gatherer(files_of(self._parts)).material(subject, verdict, room=room, small=self._small, wide=wide)

        return await asyncio.to_thread(gathered)

    async def stage(self, texts: Mapping[str, str], material: Material) -> str:
        """Stage all texts (whole files by relative path) or none, each by the permission rules for edits; return '', or
        the reason of a refusal.
        """
        before = self.staged()
        read = {file.name: file.read for file in material.files}
        view = self._parts.proposal.view
        unseen = [name for name in texts if name not in read and view.exists(view.roots.resolve(name))]
        if unseen:  # a file that the model has not seen would be replaced blindly
            return f"{', '.join(unseen)} was not in front of you; it is shown now."
        for name, text in texts.items():
            # On the text that was shown, not the present one: what was typed meanwhile is merged, never overwritten.
            result = await self._write(name, text, StageText(read[name]) if name in read else WriteFile())
            if not result.ok:
                self.restore(before)
                return result.error.message if result.error else result.text
        return ""

    async def check_change(self) -> Verdict | None:
        """Check a change that was made outside of the direct path: run what the task mentions, else the tests beside
        the changed files.

        Return None if there is nothing to run, or if tests beside the files fail, but fewer than without the change and
        no new ones.
        """
        changed, tested = self._changed_names(), self._parts.proposal.tested()
        plan = self._plan = await asyncio.to_thread(
            lambda: self._bound_plan(files_of(self._parts)) or self._beside(changed)
        )
        after = await self.check()
        if after is None or not after.failed or after.binding:
            return after
        before = await self._check(plan, await self._unchanged_checker())
        tested(Tally(after.passed, len(after.failed)))  # of all files together: each was recorded by itself
        return None if satisfied(after, before) else after

    async def _unchanged_checker(self) -> Checker:
        """Return what checks the files without the staged changes, which stay staged: the user may decide about them
        meanwhile, and whatever ends the process must not lose them.
        """
        proofs = self._parts.proposal.proofs
        place = await trial_place(self._parts, self._parts.proposal.view.base, Changeset())
        context = replace(self._context, view=place.view, staging=place.staging, shell=LookingShell(place.shell))
        return self._checker_on(context.having((OnTested, lambda: lambda tally: proofs.tested(tally, Changeset(), ""))))

    def _changed_names(self) -> tuple[str, ...]:
        """Return the names of the files that this run has changed, applied or still staged."""
        record, relative = self._parts.record, self._parts.proposal.view.roots.relative
        applied = [path for part in record.applied for path in part.changeset.paths]
        return tuple(map(relative, dict.fromkeys((*applied, *self.staged().paths))))

    async def _plan_check(self) -> CheckPlan:
        """Return the check to run. New tests are part of it once they are staged."""
        if self._plan is None:
            self._plan = await asyncio.to_thread(self._plan_of_words)
        if not self._subject.brief.writes_tests:
            return self._plan
        relative = self._parts.proposal.view.roots.relative
        written = [
            name for change in self.staged() if change.text is not None and is_test(name := relative(change.path))
        ]
        return replace(self._plan, tests=tuple(dict.fromkeys((*self._plan.tests, *written))))

    def _plan_of_words(self) -> CheckPlan:
        files = files_of(self._parts)
        return self._bound_plan(files) or self._beside(Relevance(files).about(self._subject, None))

    def _bound_plan(self, files: WorkspaceFiles) -> CheckPlan | None:
        """Return the check that the task's words ask for; None if they ask for none."""
        brief = self._subject.brief
        if brief.command:
            return CheckPlan(command=brief.command)
        named = () if brief.writes_tests else files.test_files_in(brief.words)
        if named:
            return CheckPlan(tests=named)
        return CheckPlan(all_tests=True) if brief.about_tests else None

    async def _write(self, name: str, text: str, tool: Tool[Any]) -> ToolResult:
        """Stage one new text by a call of the tool for edits or for new files; emit the call and its result."""
        self._calls += 1
        # Without the text: it is in the proposal, and a whole file would fill the log and the screen.
        shown = ToolCall(tool.traits.name, {"path": name}, f"edit_{self._calls}")
        self._parts.output.emit(events.ToolCalls(calls=(call_data(shown),)))
        result = await self._staged_by(tool, ToolCall(shown.name, {"path": name, "content": text}, shown.id))
        self._parts.output.emit(result_event(shown, result))
        return result

    async def _staged_by(self, tool: Tool[Any], call: ToolCall) -> ToolResult:
        try:
            self._parts.services.registry.get(call.name)  # a tool that is switched off is off here, too
        except AgentError as error:
            return ToolResult("failed", str(error))
        return await self._executor(ToolRegistry([tool]), self._context).execute(call)


# Renames a name in all files of a workspace, and finds uses of names that are no longer defined.


class NameChanges:
    """Finds the changes of names that a task asks for, or that staged changes have made, in all files. Methods
    block.
    """

    def __init__(self, files: WorkspaceFiles) -> None:
        self._files = files

    def renamed(self, words: str) -> tuple[Mapping[str, str], Material, tuple[str, ...]]:
        """If the words ask for a rename and nothing else, return the new texts by relative path, the files as they
        were, and the places that keep the old name, as `file:line`; all empty for other tasks.
        """
        asked = rename_in(words)
        # In a workspace that was not listed to its end, files with the name would be left out.
        if asked is None or not asked.alone or not self._files.complete:
            return {}, Material(), ()
        sources = self._sources_with(asked)
        home = home_of(asked, sources, self._files.named(words))
        found = renames(asked, home, sources, self._files.targets) if home is not None else {}
        texts = {name: applied(sources[name], each.splices) for name, each in found.items()}
        read = [ShownFile(name, file) for name in texts if (file := self._files.read(name)) is not None]
        left = tuple(f"{name}:{line}" for name, each in found.items() for line in each.left)
        return texts, Material(tuple(read)), left

    def left_behind(self, words: str, staged: Changeset) -> tuple[str, ...]:
        """Return the uses of names that the words mention and the staged changes have removed, as `name: file`.

        For a rename, these are the uses of the old name, removed or not.
        """
        asked = rename_in(words)
        if asked is not None:
            now = self._sources_with(asked)
            home = home_of(asked, {**now, **self._before(staged)}, self._files.named(words))
            if home is not None:
                return tuple(f"{asked.word}: {name}" for name in still_used(asked, home, now, self._files.targets))
        gone = frozenset[str]()
        for change in staged:
            name = self._files.relative(change.path)
            before, after = (defined_names(name, text) for text in (change.base, change.text))
            gone |= (before - after) & identifiers(words)
        return tuple(f"{word}: {name}" for word in sorted(gone) for name in self._files.using([word]))

    def _sources_with(self, asked: Rename) -> dict[str, SourceFile]:
        """Return the code files that contain the old name; of the tests only those without the new name."""
        new = re.compile(rf"\b{re.escape(asked.new)}\b")
        return {
            name: source
            for name in self._files.using([asked.word], MOST_FILES)
            if (source := self._files.source(name)) and not is_made(name)
            # A test that has the new name was written for it; what it has of the old one may be meant, such as an
            # alias.
            if not (is_test(name) and new.search(source.text))
        }

    def _before(self, staged: Changeset) -> dict[str, SourceFile]:
        """Return the changed files, parsed, as they were before the change."""
        texts = {self._files.relative(change.path): change.base for change in staged}
        return {name: source for name, text in texts.items() if text and (source := source_of(name, text))}


def defined_names(name: str, text: str | None) -> frozenset[str]:
    """Return the names that a text defines, in the language of its file name; empty for None and for unknown
    languages.
    """
    source = source_of(name, text) if text is not None else None
    return frozenset(each.symbol.name for each in source.definitions) if source is not None else frozenset()


# Implements `edit_file` for a whole new text: stages it on the text that the model was shown.


class StageTextParameters(Parameters):
    """Parameters of the internal tool that stages a text: the path of a file and its whole new text."""

    path: str
    content: str = Field(description="The whole new text")


class StageText(Tool[StageTextParameters]):
    """A tool for one call by this program, not by models: stages a new text for a file, under the permissions of
    `edit_file`; `read` is the file as the model was shown it.
    """

    traits: ClassVar[ToolTraits] = EditFile.traits
    parameters = StageTextParameters

    def __init__(self, read: FileText) -> None:
        self._read = read

    async def run(self, arguments: StageTextParameters, context: ToolContext) -> ToolOutput:
        """Stage the text, and return the id of the change."""
        step = context.staging.write({self._read.path: arguments.content}, [self._read])
        return ToolOutput(f"Staged {arguments.path} for the user's decision.", {"change_id": step.change_id})
