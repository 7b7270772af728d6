"""Names that need their own approval: to write, because something runs them; to read, because they hold keys."""

# ruff: noqa: SIM905 - word lists read better as text

from __future__ import annotations

import os
from pathlib import Path

import pytest

from codeagent_lsp.workspace.files.paths import Roots, is_build_file

PROTECTED = """
.git/config .git/info/attributes .git/hooks/pre-commit .git/worktrees/x/commondir sub/.git/hooks/pre-commit .git
.GIT/config .Git/HEAD .git./config git~1/config GIT~2/config .git::$INDEX_ALLOCATION/config
.g\u200cit/config .gi\u00adt/config \uff0egit/config .vscode/settings.json .vscode/tasks.json .vscode/launch.json
.VSCode/extensions.json sub/.vscode/mcp.json .mcp.json x.code-workspace .idea/workspace.xml .zed/settings.json
.kiro/settings/mcp.json .claude/settings.json .cursor/mcp.json .codeagent/skills/x/SKILL.md .nvim.lua .nvimrc .exrc
.dir-locals.el .helix/languages.toml .devcontainer/devcontainer.json .devcontainer.json .github/workflows/ci.yml
.gitlab-ci.yml .circleci/config.yml Jenkinsfile azure-pipelines.yml .husky/pre-push hooks/pre-commit
.ripgreprc pyrightconfig.json .bashrc .zshrc .zshenv .profile .bash_profile .npmrc .pypirc .netrc .gitconfig
.gitmodules .envrc .vimrc .gdbinit .pre-commit-config.yaml lib/x.pth SITECUSTOMIZE.PY usercustomize.py conftest.py
src/conftest.py CON aux.txt NUL .config/autostart/x.desktop .ssh/authorized_keys .cargo/config.toml
.ſsh/config .yarnrc.yml .pylintrc Makefile package.json docs/config docs/HEAD CLAUDE.md .eslintrc.cjs
""".split()

FREE = """
src/new.py src/a.py README.md git/config.py .gitignore vscode/settings.json tests/conftest.py
pkg/tests/unit/conftest.py src/hooks/useThing.ts hooks/index.ts src/config.py console.py contact.md nullable.py
github/x.yml mypth.py src/rc.py .editorconfig package-lock.json pyproject.toml docs/.keep profile.py src.git.md
""".split()

SECRET = """
.env .ENV .env.local .env.production prod.env id_rsa id_ed25519 keys/id_ecdsa secrets/prod.pem server.key cert.p12
.npmrc .netrc .pypirc .pgpass kubeconfig .aws/credentials .ssh/config credentials.json .git-credentials
terraform.tfstate .kube/config .docker/config.json
""".split()

OPEN = """
.env.example .env.sample .env.local.example src/env.py id_rsa.pub keys.py environment.ts src/secrets.py pem.md
monkey.py key.go
""".split()


@pytest.fixture
def roots(tmp_path: Path) -> Roots:
    return Roots([str(tmp_path.resolve())])


def _full(roots: Roots, name: str) -> str:
    return os.path.join(roots.folders[0], name)  # noqa: PTH118 - Path would tidy the name


@pytest.mark.parametrize("name", PROTECTED)
def test_protected_before_it_exists(roots: Roots, name: str) -> None:
    assert roots.is_protected(_full(roots, name))


def test_what_only_builds_run_is_told_apart(roots: Roots, tmp_path: Path) -> None:
    assert is_build_file(roots, _full(roots, "Makefile"))
    assert not is_build_file(roots, _full(roots, ".vscode/Makefile"))
    assert not is_build_file(roots, "/elsewhere/Makefile")
    (tmp_path / "other").write_text("x")
    (tmp_path / "package.json").hardlink_to(tmp_path / "other")
    assert not is_build_file(roots, _full(roots, "package.json"))


@pytest.mark.parametrize("name", FREE)
def test_not_protected(roots: Roots, name: str) -> None:
    assert not roots.is_protected(_full(roots, name))


@pytest.mark.parametrize("name", SECRET)
def test_secret(roots: Roots, name: str) -> None:
    assert roots.is_secret(_full(roots, name))


@pytest.mark.parametrize("name", OPEN)
def test_not_secret(roots: Roots, name: str) -> None:
    assert not roots.is_secret(_full(roots, name))


@pytest.mark.parametrize(
    "name", [".git\u00a0/config", "a\nb.txt", "a\rb", "ev\u202elic.py", "a\u200bb.py", "tag\U000e0041.py"]
)
def test_names_that_deceive_are_protected(roots: Roots, name: str) -> None:
    assert roots.is_protected(_full(roots, name))


def test_the_root_itself_is_protected(roots: Roots) -> None:
    assert roots.is_protected(roots.folders[0])
    assert not roots.is_secret(roots.folders[0])


def test_a_hard_link_is_protected(roots: Roots, tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text("x")
    assert not roots.is_protected(_full(roots, "one.txt"))
    os.link(tmp_path / "one.txt", tmp_path / "two.txt")
    assert roots.is_protected(_full(roots, "two.txt"))


def test_outside_is_protected(roots: Roots) -> None:
    assert roots.is_protected("/elsewhere/a.py")


def test_only_names_below_the_folder_count(tmp_path: Path) -> None:
    (tmp_path / ".config/app").mkdir(parents=True)
    roots = Roots([str(tmp_path / ".config/app")])
    assert not roots.is_protected(_full(roots, "main.py"))
