"""Classification of file names in a workspace that are dangerous to write, as a program runs them, or to read.

Based on the name alone, so that files that do not exist yet are covered, after folding what file systems fold: case,
Unicode forms, ignored code points, trailing dots, streams and short names. Not here: resolving paths (`paths.py`) and
the user's permissions.
"""

# ruff: noqa: SIM905 - word lists read better as text

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from codeagent_lsp.workspace.text.unseen import is_unseen

_FOLDERS = frozenset(
    """
    .git .hg .svn .jj .githooks .husky .vscode .vs .idea .fleet .nova .zed .kiro .cursor .windsurf .claude
    .codeagent .codex .gemini .continue .helix .nvim .vim .emacs.d .devcontainer .github .gitlab .gitea
    .forgejo .circleci .buildkite .woodpecker .drone .teamcity .azure-pipelines .ssh .gnupg .aws .kube
    .docker .config .cargo .yarn .mvn .bundle .direnv .mise .ipython .jupyter
    """.split()
)
_NAMES = frozenset(
    """
    .mcp.json mcp.json .nvim.lua .lazy.lua .neoconf.json .dir-locals.el .dir-locals-2.el .emacs .lvimrc
    .local.vimrc .profile .login .logout .bash_profile .bash_login .bash_logout .bash_aliases .zshenv
    .zprofile .zlogin .zlogout .xprofile .xsession .xsessionrc .pam_environment .gdbinit .lldbinit
    .rprofile .renviron .pythonstartup .tmux.conf .gitconfig .gitmodules .git-credentials .pnp.cjs
    .pnpmfile.cjs .yarnrc.yml pip.conf .netrc _netrc .mailcap crontab .devcontainer.json
    .pre-commit-config.yaml .pre-commit-config.yml lefthook.yml .lefthook.yml lefthook.yaml .gitlab-ci.yml
    .gitlab-ci.yaml .travis.yml .appveyor.yml appveyor.yml azure-pipelines.yml azure-pipelines.yaml
    bitbucket-pipelines.yml cloudbuild.yaml cloudbuild.yml .drone.yml .woodpecker.yml .woodpecker.yaml
    .cirrus.yml jenkinsfile .tool-versions .mise.toml mise.toml .clangd pyrightconfig.json
    sitecustomize.py usercustomize.py
    """.split()
)
_ENDINGS = (".pth", ".code-workspace", ".sublime-project", ".desktop", ".service")
_RC = re.compile(r"[._][\w.-]*rc")
_DEVICE = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\..*)?")
_GIT_HOOK = re.compile(
    r"(?:applypatch-msg|fsmonitor-watchman|(?:pre|post|prepare)-[a-z-]+|commit-msg|update|reference-transaction)"
)
_TEST_FOLDERS = frozenset({"test", "tests"})

_SECRET_FOLDERS = frozenset({".ssh", ".aws", ".gnupg", ".kube", ".azure", ".docker"})
_SECRET_NAMES = frozenset(
    """
    .netrc _netrc .npmrc .yarnrc.yml .pypirc .pgpass .my.cnf .envrc .htpasswd .git-credentials .dockercfg
    .dockerconfigjson .vault-token .terraformrc .s3cfg .boto kubeconfig credentials credentials.json
    secrets.json secrets.yml secrets.yaml secrets.toml terraform.tfvars id_rsa id_dsa id_ecdsa id_ed25519
    id_ecdsa_sk id_ed25519_sk
    """.split()
)
_SECRET_ENDINGS = (
    *(".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ppk", ".p8", ".tfstate"),
    *(".kubeconfig", ".asc", ".gpg", ".ovpn"),
)
_SECRET_ENV = re.compile(r"\.env(?:\.(?!(?:.*\.)?(?:example|sample|template|dist|defaults?)$).+)?|.+\.env")


def runs_later(parts: Sequence[str]) -> bool:
    """Return whether some program runs or obeys a file of this name, or the name deceives.

    `parts` start below the root.

    Also True for no parts, the root itself, which is never to be moved or deleted.
    """
    folded = [fold(part) for part in parts]
    if not folded or any(part in _FOLDERS or _spoofs(raw) for part, raw in zip(folded, parts, strict=True)):
        return True
    name = folded[-1]
    if name == "conftest.py":
        return not _TEST_FOLDERS.intersection(folded[:-1])
    if len(folded) > 1 and folded[-2] in ("hooks", ".hooks") and _GIT_HOOK.fullmatch(name):
        return True
    known = name in _NAMES or name.endswith(_ENDINGS)
    return known or bool(_RC.fullmatch(name) or _DEVICE.fullmatch(name))


def holds_secrets(parts: Sequence[str]) -> bool:
    """Return whether a file of this name usually contains keys or passwords; `parts` start below the root."""
    folded = [fold(part) for part in parts]
    if not folded:
        return False
    name = folded[-1]
    known = name in _SECRET_NAMES or name.endswith(_SECRET_ENDINGS) or bool(_SECRET_ENV.fullmatch(name))
    return known or not _SECRET_FOLDERS.isdisjoint(folded)


def fold(part: str) -> str:
    """Return a file name as the most permissive file system reads it.

    For example, `.GIT.`, `.g<joiner>it` and `GIT~1` become `.git`.
    """
    # Some file systems ignore invisible characters.
    kept = "".join(char for char in part if char not in "\n\t" and not is_unseen(char))
    plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", kept).casefold())
    stem = plain.partition(":")[0].rstrip(". ")
    return ".git" if re.fullmatch(r"git~\d+", stem) else stem


def _spoofs(part: str) -> bool:
    """Return whether a name is displayed as something else: line breaks, bidi marks, invisible characters."""
    return any(char in "\n\t" or is_unseen(char) for char in part)
