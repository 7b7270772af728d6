"""Permission decisions: rules, modes and isolation applied to one exact call.

Deny wins, then ask, then allow; calls that no rule covers are decided by the mode and the tool's effect. A shell
command is judged by its words and by where it would run: security rests on isolation, not on command names, so in a
shadow that lets nothing out a command needs no question unless a rule of the user asks for one. Whether the model may
read a file without asking is the same for every tool that shows its text, and cheap, as maps and searches ask it for
every file. Not here: asking the user (`executor.py`), the grammar of shell commands (`shell_policy.py`).
"""

from __future__ import annotations

import fnmatch
import json
import os
import re
import unicodedata
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from glob import iglob
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from codeagent_lsp.config import PermissionsSettings, ShellSettings
from codeagent_lsp.errors import AgentError
from codeagent_lsp.system import bash
from codeagent_lsp.texts import text
from codeagent_lsp.tools.traits import Effect, ToolTraits
from codeagent_lsp.workspace.files.paths import Roots, is_build_file

if TYPE_CHECKING:  # heavy, and a process that runs no commands does without it
    from codeagent_lsp.shadow.shell import Isolation

Verdict = Literal["allow", "ask", "deny"]
Mode = Literal["ask", "acceptEdits", "readOnly", "bypass"]

_NAME = re.compile(r"[\w.*-]+")
_RULE = re.compile(r"^(?P<tool>[\w.*-]+)(?:\((?P<pattern>.*)\))?$", re.DOTALL)
MAX_MATCHES = 2_000
MAX_ENTRIES = 20_000

READ_FILE = ToolTraits(
    "read_file",
    "Read a file with line numbers, as the user sees it now (unsaved text included).",
    "read",
    path_parameters=("path",),
    result="file",
    hook_name="Read",
)
READ_NAMES = ("read", "file_read")
"""Other names of `read_file`."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The verdict about one call with its reason in English. `remember`: an approval may be kept for later calls;
    `firm`: the verdict holds whatever the isolation; `guarded`: a deny rule may cover the call unseen, so that it asks
    in every mode; `key`: of the reason among the texts for the user, '' for one that only English has.
    """

    verdict: Verdict
    reason: str
    remember: bool = True
    firm: bool = False
    guarded: bool = False
    key: str = ""

    def reason_in(self, language: str) -> str:
        """Return the reason for the user, in the language `en` or `zh-cn`, in English if it has no key."""
        return text(self.key, language) if self.key else self.reason


def asking(key: str, *, remember: bool = True, firm: bool = False) -> Decision:
    """Return the decision to ask, with the reason that the catalogue has for this key, in English. `remember`: the user
    may allow it for longer than this call; `firm`: it holds whatever the isolation.
    """
    return Decision("ask", text(key, "en"), remember, firm, key=key)


@dataclass(frozen=True, slots=True)
class CommandEnvironment:
    """The shell settings and the isolation of commands; None, with a `reason`, if commands cannot run."""

    shell: ShellSettings
    isolation: Isolation | None
    reason: str = ""

    @property
    def terms(self) -> str:
        """What an approval of a command is bound to, as JSON: the isolation in force, the network, the readable places,
        the image.
        """
        found, shell = self.isolation, self.shell
        kept = [found.level, found.confined, found.offline, found.hidden] if found else []
        return json.dumps([*kept, shell.allow_network, sorted(shell.readable), shell.container_image])


NOWHERE = CommandEnvironment(ShellSettings(), None, "Commands cannot run here.")


@dataclass(frozen=True, slots=True)
class Rule:
    """A permission rule `tool(pattern)`: globs for the tool's name and for its subjects (paths, commands); None for
    any.
    """

    tool: str
    pattern: str | None

    @staticmethod
    def parse(text: str) -> Rule | None:
        """Parse a rule, such as `run_cmd(git *)` or `edit_file`, with or without `tool:` before it; None if the text is
        not one.
        """
        match = _RULE.match(_bare(text))
        return Rule(match["tool"], match["pattern"]) if match else None

    def covers(self, tool: str, subjects: Iterable[str]) -> bool:
        """Return whether the rule covers this tool and any of these subjects; without a pattern the tool alone counts.
        Globs are matched with regard to case.
        """
        if not fnmatch.fnmatchcase(tool, self.tool):
            return False
        return self.pattern is None or any(_matches(self.pattern, subject) for subject in subjects)

    def covers_all(self, tool: str, subjects: Iterable[str]) -> bool:
        """Return whether the rule covers this tool and every one of these subjects; without a pattern, and for no
        subjects, by the tool alone.
        """
        if not fnmatch.fnmatchcase(tool, self.tool):
            return False
        return self.pattern is None or all(_matches(self.pattern, subject) for subject in subjects)


def effects_of(mode: Mode) -> tuple[Effect, ...]:
    """Return the effects whose tools are offered in a mode; `readOnly` has only `read` and `ask`."""
    return ("read", "ask") if mode == "readOnly" else ("read", "write", "run", "net", "ask")


def decide(
    traits: ToolTraits,
    arguments: Mapping[str, Any],
    settings: PermissionsSettings,
    roots: Roots,
    place: CommandEnvironment = NOWHERE,
    names: Iterable[str] = (),
) -> Decision:
    """Return the decision for one call, from the mode, the rules, what the call touches and how it would run.
    `arguments` must be the validated ones: before repair, a path could hide in a text that holds JSON. `names` are
    other names of the tool, by which rules may name it. Asks nobody; may look at the disk to resolve paths.
    """
    settings = _in_own_name(settings, traits.name, names)
    # Before all rules: in a mode that only reads, no allow rule lets anything be changed.
    if traits.effect not in effects_of(settings.mode):
        return Decision("deny", f"The mode {settings.mode} allows no tool that changes or runs anything.")
    ruled = _by_rules(traits, arguments, settings, roots)
    # Only commands are judged by where they run, too; all other tools can do no more than their arguments say.
    if ruled.verdict == "deny" or traits.effect != "run":
        return ruled
    return _decide_by_environment(ruled, arguments, place, settings.mode)


def reading(path: str, settings: PermissionsSettings, roots: Roots) -> Decision:
    """Return the decision for a call of `read_file` on one file, an absolute path, by the user's rules. Asks nobody."""
    return decide(READ_FILE, {"path": path}, settings, roots, names=READ_NAMES)


def may_read(settings: PermissionsSettings, roots: Roots) -> Callable[[str], bool]:
    """Return a predicate for whether a file (absolute path) may be read without asking the user, by these settings."""
    return lambda path: reading(path, settings, roots).verdict == "allow"


def subjects_of(traits: ToolTraits, arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the subjects of a call as the model wrote them: paths, then other subjects; ('',) if there are none."""
    found = (*_paths_named(traits, arguments), *_parameter_texts(traits.subject_parameter, arguments))
    return found or ("",)


def resolved_paths(traits: ToolTraits, arguments: Mapping[str, Any], roots: Roots) -> tuple[str, ...]:
    """Return the call's paths as real paths, without those outside of the workspace and those of a patch that cannot be
    read, which the tool itself refuses.
    """
    found = []
    with suppress(AgentError):
        for path in _paths_named(traits, arguments):
            with suppress(AgentError):
                found.append(roots.resolve(path))
    return tuple(found)


def _in_own_name(settings: PermissionsSettings, name: str, others: Iterable[str]) -> PermissionsSettings:
    """Return the settings with the tool's own name in rules that name it by one of `others`, in any case."""
    known = {other.casefold() for other in others}

    def named(rules: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(_rename_rule(_bare(rule), name, known) for rule in rules)

    if not known or not (settings.allow or settings.ask or settings.deny):
        return settings
    allow, ask, deny = map(named, (settings.allow, settings.ask, settings.deny))
    return replace(settings, allow=allow, ask=ask, deny=deny)


def _bare(rule: str) -> str:
    return rule.strip().removeprefix("tool:")


def _rename_rule(rule: str, name: str, others: Container[str]) -> str:
    head = _NAME.match(rule)
    return name + rule[head.end() :] if head and head[0].casefold() in others else rule


def _by_rules(
    traits: ToolTraits, arguments: Mapping[str, Any], settings: PermissionsSettings, roots: Roots
) -> Decision:
    # The order is the promise: what is denied, what runs later, what the user wants to be asked about, the command's
    # own words, the mode, what is allowed, and then what the call is.
    # Resolved, so that a rule about a file is not passed by through a link or a `..`.
    paths = resolved_paths(traits, arguments, roots)
    subjects = (*map(roots.relative, paths), *_parameter_texts(traits.subject_parameter, arguments))
    subjects = subjects or subjects_of(traits, arguments)
    if any(rule.covers(traits.name, subjects) for rule in _rules(settings.deny, widen=True)):
        return Decision("deny", "A deny rule of the user covers this call.")
    later = [path for path in paths if roots.is_protected(path)] if traits.effect in ("write", "net") else []
    # Before the modes and the allow rules, none of which reaches these files.
    if not all(is_build_file(roots, path) for path in later):
        return asking("asked.run_later", remember=False)
    if any(rule.covers(traits.name, subjects) for rule in _rules(settings.ask, widen=True)):
        return asking("asked.rule", firm=True)
    command = arguments.get(traits.command_parameter)
    if isinstance(command, str):
        decision = _judge_command(
            command,
            _command_rules(traits.name, settings),
            _CommandPlaces(roots),
            str(arguments.get("working_dir") or ""),
        )
        # Guarded: a deny rule may cover what runs unseen, which not even the mode bypass passes over.
        if decision.verdict == "deny" or decision.guarded:
            return decision
    if settings.mode == "bypass":
        return Decision("allow", "The mode bypass allows it.", firm=True)
    if isinstance(command, str):
        if decision.verdict == "allow" and bash() is None:
            # What was judged is bash; the shell of Windows may read other commands in the same text.
            return asking("asked.cmd", remember=False)
        return decision
    # All subjects, while one is enough for the rules above: a call is as dangerous as its worst part.
    if any(rule.covers_all(traits.name, subjects) for rule in _rules(settings.allow)):
        return Decision("allow", "An allow rule of the user covers this call.", firm=True)
    if later and settings.mode != "acceptEdits":
        return asking("asked.build")
    if any(map(roots.is_secret, paths)):
        return asking("asked.secret", firm=True)
    if traits.approved:
        return Decision("allow", "It needs no approval.", firm=True)
    if traits.effect in ("run", "net"):
        return asking("asked.beyond")
    return Decision("allow", "Reading and staging need no approval.")


def _judge_command(command: str, rules: _CommandRules, places: _CommandPlaces, folder: str = "") -> Decision:
    """Return the decision about a command line by its words alone, wherever it runs; `folder` is the absolute path of
    the folder it starts in. `deny` means that it is never run.

    A `firm` decision (a rule of the user, or the name of a secret) holds under any isolation. Otherwise `allow` means
    that the command only reads, and `ask` that the isolation may decide instead.
    """
    from codeagent_lsp.tools.permissions.shell_policy import (  # late: its tables are large
        covered_by,
        covering_rule,
        followed_folders,
        judge,
        paths_named,
        version_files,
    )

    judgement = judge(command, allow=rules.allow, ask=rules.ask, deny=rules.deny)
    if judgement.decision == "deny":
        return Decision("deny", _first(judgement.reasons))
    if judgement.unread:
        return Decision("ask", _first(judgement.reasons), firm=True, guarded=judgement.unread == "deny")
    if (rule := covering_rule(rules.ask, command)) is not None:
        return Decision("ask", f"The ask rule {rule!r} covers this command.", firm=True)
    named = paths_named(command, folder)
    if any(map(places.is_secret, named or ())):
        return asking("asked.command_secret", firm=True)
    # Allowed by the user and not by its words: links and version files are then the user's matter.
    firm = judgement.decision == "allow" and covered_by(rules.allow, command)
    if judgement.decision == "allow" and not firm:
        if named is None or any(map(places.leads_out, named)):
            return asking("asked.link")
        if any(map(places.holds_ways_out, followed_folders(command, folder))):
            return asking("asked.links")
        if any(map(places.is_file, version_files(command, folder))):
            return asking("asked.version")
    return Decision(judgement.decision, _first(judgement.reasons), firm=firm)


def _decide_by_environment(
    decision: Decision, arguments: Mapping[str, Any], place: CommandEnvironment, mode: Mode
) -> Decision:
    """Return the decision changed by how the call would run: a rule that allows a command does not allow it the
    network, and without isolation every command asks.
    """
    shell, isolation = place.shell, place.isolation
    if isolation is None:
        return Decision("deny", place.reason)
    # Before rules and settings: nothing of a command in the real folder can be taken back.
    if isolation.level == "direct":
        return asking("asked.direct", remember=False)
    widened = arguments.get("allow_network") and not shell.allow_network and mode != "bypass"
    if decision.firm and not (widened and decision.verdict == "allow"):
        return decision
    if widened:
        return asking("asked.network")
    if shell.confirm == "never":
        return Decision("allow", "The setting shell.confirm asks for nothing.")
    if shell.confirm == "unisolated":
        if isolation.complete and not shell.allow_network:
            return Decision("allow", "It runs in the shadow, without network; nothing it does gets out.")
        return decision
    return asking("asked.confirm")


@dataclass(frozen=True, slots=True)
class _CommandRules:
    """The user's rules for one tool: patterns without the tool's name. A rule that names the tool alone is `*`."""

    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _CommandPlaces:
    """The files of one workspace, as a command's words name them; relative ones are in its first folder. Methods look
    at the disk and block.
    """

    roots: Roots

    def is_secret(self, word: str) -> bool:
        """Return whether a word names a file that usually holds secrets: as a path, as a pattern that matches one, or
        behind the revision that git shows it of.
        """
        names = [word, *self._matches(word)]
        names += [word.partition(":")[2]] if ":" in word else []
        return any(map(self._holds_secrets, names))

    def leads_out(self, word: str) -> bool:
        """Return whether a word, as a path or as a pattern of names, leads out of the workspace.

        So does a pattern that matches too much to look at, a link to a secret, or a name that programs take for an
        option.
        """
        if self._is_outside(word):
            return True
        found = self._matches(word)
        return len(found) > MAX_MATCHES or any(map(self._is_odd, found))

    def holds_ways_out(self, word: str) -> bool:
        """Return whether the folder that a word names holds, at any depth, a link that leads out or to a secret."""
        try:
            folder = self.roots.resolve(word)
        except AgentError:
            return True
        return any(self._is_odd(path) for path in _links(folder))

    def is_file(self, word: str) -> bool:
        """Return whether a word names something that lies in the workspace, a link included."""
        full = os.path.normpath(Path(*self.roots.folders[:1], word))
        return os.path.lexists(full) and any(full.startswith(f"{root}/") for root in self.roots.folders)

    def _matches(self, word: str) -> list[str]:
        """Return the names that a pattern matches, one more than `MAX_MATCHES` at most; none for a plain word."""
        if not any(char in word for char in "*?[") or not self.roots.folders:
            return []
        found = iglob(word, root_dir=self.roots.folders[0])  # noqa: PTH207 - names alone
        return list(islice(found, MAX_MATCHES + 1))

    def _holds_secrets(self, name: str) -> bool:
        try:
            return self.roots.is_secret(self.roots.resolve(name))
        except AgentError:
            return False

    def _is_outside(self, word: str) -> bool:
        """Return whether a path leads out; an absolute one that does not exist is a pattern or a program's text."""
        if Path(word).is_absolute() and not os.path.lexists(word):
            return False
        try:
            self.roots.resolve(word)
        except AgentError:
            return True
        return False

    def _is_odd(self, path: str) -> bool:
        full = Path(self.roots.folders[0], path)
        # As the pattern is expanded, a file called `-r` would be an option.
        return full.name.startswith("-") or self._is_outside(path) or (full.is_symlink() and self.is_secret(path))


def _links(folder: str) -> list[str]:
    """Return the symbolic links below a folder; an impossible one if there is too much to look at."""
    found: list[str] = []
    waiting, seen = [folder], 0
    while waiting:
        try:
            entries = list(os.scandir(waiting.pop()))
        except OSError:
            continue
        seen += len(entries)
        if seen > MAX_ENTRIES:
            return ["/"]
        found += [entry.path for entry in entries if entry.is_symlink()]
        waiting += [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
    return found


def _paths_named(traits: ToolTraits, arguments: Mapping[str, Any]) -> list[str]:
    found: list[str] = []
    for name in traits.path_parameters:
        value = arguments.get(name)
        found.extend(
            _patched_paths(value) if name == "patch" and isinstance(value, str) else _parameter_texts(name, arguments)
        )
    return found


def _patched_paths(patch: str) -> Sequence[str]:
    """Return the paths in a patch."""
    from codeagent_lsp.workspace.edits.patch import paths_of  # late: heavy, and a process that only reads has no patch

    return paths_of(patch)


def _parameter_texts(parameter: str, arguments: Mapping[str, Any]) -> list[str]:
    """Return the texts of a parameter: its own, those in its list, or for `list.key` those of the
    objects in the list.
    """
    head, _, rest = parameter.partition(".")
    value = arguments.get(head)
    if rest:
        items = value if isinstance(value, list) else []
        return [str(item.get(rest)) for item in items if isinstance(item, Mapping)]
    if isinstance(value, list):
        return [item for item in value if isinstance(item, str)]
    return [value] if isinstance(value, str) else []


def _command_rules(tool: str, settings: PermissionsSettings) -> _CommandRules:
    def patterns(texts: Iterable[str], *, widen: bool = False) -> tuple[str, ...]:
        own = (rule for rule in _rules(texts, widen=widen) if fnmatch.fnmatchcase(tool, rule.tool))
        return tuple("*" if rule.pattern is None else rule.pattern for rule in own)

    ask, deny = patterns(settings.ask, widen=True), patterns(settings.deny, widen=True)
    return _CommandRules(patterns(settings.allow), ask, deny)


def _rules(texts: Iterable[str], *, widen: bool = False) -> list[Rule]:
    """Return the parsed rules; with `widen`, an invalid rule covers its whole tool, so that a typo allows nothing."""
    rules = []
    for written in texts:
        rule = Rule.parse(written)
        name = _NAME.match(_bare(written)) if rule is None and widen else None
        rules.append(Rule(name[0], None) if name else rule)
    return [rule for rule in rules if rule is not None]


def _matches(pattern: str, subject: str) -> bool:
    pattern, clean = (unicodedata.normalize("NFC", name) for name in (pattern, subject.removeprefix("./")))
    # `src/**` means the folder itself as well.
    if pattern.endswith("/**") and clean == pattern[:-3]:
        return True
    # `app/[id]/*` is a folder of some frameworks, and may as well be one of two letters.
    return any(fnmatch.fnmatchcase(clean, each) for each in (pattern, pattern.replace("[", "[[]")))


def _first(reasons: Sequence[str]) -> str:
    return reasons[0] if reasons else ""
