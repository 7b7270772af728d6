"""Selection of what commands may read of the home folders and the system: toolchains and the repository that the
workspace is a part of, but no credentials.

Reads names and links only, and changes nothing. Not here: how a path is hidden (`sandbox.py`).
"""

# ruff: noqa: SIM905 - word lists read better as text

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from codeagent_lsp.shadow.interpreters import behind, parts
from codeagent_lsp.workspace.files.git_folders import outer_folders, top_of
from codeagent_lsp.workspace.files.paths import within
from codeagent_lsp.workspace.files.sensitive import holds_secrets

_HOMES = ("/home", "/root", "/var/home", "/Users")

_TOOLCHAINS = """
    .cargo .rustup .nvm .pyenv .rbenv .rvm .nodenv .asdf .bun .deno .volta .sdkman .jenv .goenv .fnm .n .ghcup
    .cabal .stack .opam .juliaup .julia .swiftly .elan .dotnet .nuget/packages .m2 .gradle go .go .pub-cache fvm
    .conda miniconda3 anaconda3 miniforge3 mambaforge micromamba .pixi .local/bin .local/lib .local/go .local/node
    .local/pipx .local/share/uv .local/share/pipx .local/share/mise .local/share/pnpm .local/share/fnm
    .local/share/virtualenvs .local/share/rtx .local/share/pypoetry .poetry .linuxbrew .gem .nix-profile .proto
    .config/gem .yarn/bin .npm-global .local/state/nix .mix .hex .composer/vendor .config/composer/vendor
""".split()
"""Folders of toolchains in the home folder. Tokens in some of them are listed among the credentials."""

_CREDENTIALS = """
    .ssh .aws .azure .gnupg .netrc _netrc .git-credentials .config/git/credentials .npmrc .yarnrc .yarnrc.yml
    .pypirc .pip/pip.conf .config/pip/pip.conf .docker .kube .minikube .config/containers .config/gh .config/glab-cli
    .config/hub .config/gcloud .config/doctl .config/rclone .config/sops .config/op .config/1Password .config/keepassxc
    .config/github-copilot .config/hcloud .config/flyctl .fly .heroku .vault-token .terraform.d .terraformrc .oci
    .databrickscfg .snowflake .s3cfg .boto .pgpass .my.cnf .mylogin.cnf .config/openstack .config/configstore
    .local/share/keyrings .local/share/kwalletd .local/share/uv/credentials .password-store .config/age
    .local/share/password-store .mozilla .thunderbird .config/google-chrome .config/chromium .config/BraveSoftware
    .config/microsoft-edge .config/vivaldi .config/opera .librewolf .cache/mozilla .cache/google-chrome .var/app snap
    .config/Signal .config/Slack .config/discord .config/Code .config/VSCodium .config/Cursor .vscode-server/data
    .cargo/credentials .cargo/credentials.toml .m2/settings.xml .m2/settings-security.xml .gradle/gradle.properties
    .gem/credentials .config/gem/credentials .local/share/gem/credentials .nuget/NuGet .config/NuGet
    .composer/auth.json .config/composer/auth.json .config/pypoetry .hex/hex.config .pub-cache/credentials.json
    .config/dart .stack/config.yaml .cabal/config .julia/servers .julia/logs .conda/credentials .continuum .condarc
    .cache/huggingface/token .huggingface .config/huggingface .kaggle .config/wandb .config/openai .codex
    .gemini .aider .local/share/atuin .local/share/fish .config/fish/fish_variables .subversion/auth
    .Xauthority .ICEauthority .rhosts .pki .electrum .bitcoin .ethereum .config/evolution .local/share/evolution
    .msmtprc .mutt .config/msmtp .purple .irssi .weechat .gnome2/keyrings .lesshst .viminfo
    .ipython/profile_default/history.sqlite .local/share/nvim/shada .local/state/nvim .julia/prefs .config/codeagent
    .config/rustup/credentials .config/cargo/credentials.toml .local/state/codeagent-lsp .local/share/codeagent-lsp
""".split()
"""Files and folders of the home folder that are never shown, even inside a visible folder."""

_CREDENTIAL_NAMES = ("*_history", "*.kdbx", ".*history", ".*_token", ".*-token", ".*credentials*")

_SYSTEM = """
    /etc/shadow /etc/shadow- /etc/gshadow /etc/gshadow- /etc/sudoers /etc/sudoers.d /etc/ssl/private /etc/krb5.keytab
    /etc/NetworkManager/system-connections /etc/wireguard /etc/openvpn /etc/ppp /etc/kubernetes /etc/rancher
    /etc/letsencrypt /etc/docker /etc/cni /etc/security/opasswd /etc/msmtprc /etc/exim4/passwd.client
    /var/lib/docker /var/lib/containers /var/lib/containerd /var/lib/kubelet /var/lib/rancher /var/lib/lxd
    /var/snap/lxd /var/backups /var/spool/cron /var/spool/mail /var/mail /var/lib/NetworkManager /var/lib/bluetooth
    /var/lib/systemd/coredump /var/lib/mysql /var/lib/postgresql /var/lib/redis /var/lib/private
    /var/lib/incus /var/lib/libvirt /var/lib/sss /var/lib/gdm3 /var/spool/postfix
    /var/spool/cups /var/spool/exim4 /var/lib/tailscale /var/lib/cloud /var/lib/puppet /var/lib/rabbitmq
""".split()

_CACHES = """
    .cache/go-build go/pkg/mod .cargo/registry .cargo/git .gradle/caches .m2/repository .npm/_cacache .cache/pip
    .cache/uv .cache/pnpm .cache/deno .cache/ccache .ccache .cache/sccache .cache/zig .cache/bazel
""".split()
"""Folders of the home folder in which tools keep what they have fetched and built."""

_CACHES_IN_ENVIRONMENT = """
    GOCACHE GOMODCACHE CCACHE_DIR SCCACHE_DIR PIP_CACHE_DIR UV_CACHE_DIR DENO_DIR
""".split()

_ROOTS_IN_ENVIRONMENT = """
    CARGO_HOME RUSTUP_HOME PYENV_ROOT NVM_DIR NVM_BIN RBENV_ROOT GOROOT GOPATH JAVA_HOME BUN_INSTALL DENO_INSTALL
    VOLTA_HOME SDKMAN_DIR CONDA_PREFIX MAMBA_ROOT_PREFIX VIRTUAL_ENV ASDF_DATA_DIR MISE_DATA_DIR PNPM_HOME DOTNET_ROOT
    ANDROID_HOME FLUTTER_ROOT JULIA_DEPOT_PATH GRADLE_HOME MAVEN_HOME KOTLIN_HOME GEM_HOME
""".split()

_TEMPORARY = ("/tmp", "/var/tmp")  # noqa: S108 - commands have their own
_COVERED = (*_TEMPORARY, "/run")
"""Folders of the system that commands see empty, but for toolchains in them."""
_INSTALLED = ("conda-meta", "pkg/tool", "bin/javac")
"""Signs of an installation (Conda, Go, Java) that needs more of its folder than `parts`, and has nothing else in it."""
_BIN = frozenset({"bin", "sbin", "shims", "Scripts"})
_SHARED = frozenset({".local", "share", ".config", ".cache"})
_ENVIRONMENTS = (".venv", "venv", "env")
_MAX_ENTRIES = 5000
_MAX_CACHES = 8  # each costs every command two milliseconds
_MAX_LINKS = 16


@dataclass(frozen=True, slots=True)
class Hidden:
    """The paths hidden from a command, all absolute. `areas` are shown empty, except for `visible`, which is shown
    read-only; `masked` is never shown.

    `caches` are folders of build tools that commands may write to, since otherwise each session would build everything
    anew.
    """

    areas: tuple[str, ...] = ()
    visible: tuple[str, ...] = ()
    masked: tuple[str, ...] = ()
    caches: tuple[str, ...] = ()


def hide(
    home: str, *, environ: Mapping[str, str], folders: Sequence[str], readable: Sequence[str], private: Sequence[str]
) -> Hidden:
    """Return what to hide from commands in the workspace `folders` of the user with the home folder `home`. Reads names
    and links only.

    `environ` determines the toolchains to show (`PATH` and more); `readable` is the setting; `private` are folders that
    no command sees, such as this program's own state.
    """
    home = os.path.realpath(home)
    areas = tuple(dict.fromkeys(_real(path) for path in (*_HOMES, home) if path != "/" and Path(path).is_dir()))
    # These stay hidden whatever else is shown, the user's setting included.
    secret = [*_credentials(home), *(_real(path) for path in private), *_keys_above(folders)]
    chosen = [path for path in _readable(home, readable) if within(path, areas)]
    kept = [*folders, *map(_real, private)]  # a folder that holds one of these is more than a toolchain
    tools = _toolchains(home, (*areas, *_COVERED), environ, folders)
    chosen += [path for path in tools if within(path, areas) or not any(within(item, [path]) for item in kept)]
    around = [path for folder in folders for path in _around(folder, areas, home)]
    # A virtual environment of the workspace is made of links to an interpreter that may lie in the home folder.
    found = (path for path in _behind_environments(folders, home, environ) if not within(path, folders))
    wished = [*chosen, *(path for path in found if within(path, (*areas, *_COVERED))), *around]
    allowed = (path for path in wished if within(path, (*areas, *_COVERED)) and not within(_real(path), secret))
    visible = _outermost(path for path in allowed if Path(path).exists())
    shown = [*map(_real, visible), *folders]
    # Inside an area that is shown empty there is nothing to mask, and each mask is a mount.
    masked = {path for path in secret if within(path, shown) or not within(path, (*areas, *_COVERED, "/dev"))}
    # What we cannot read, a command of the same user cannot read either.
    masked.update(path for path in map(_real, _system()) if os.access(path, os.R_OK))
    # A mask over a folder above the workspace would hide the workspace itself.
    there = (path for path in masked if os.path.lexists(path) and not any(within(f, [path]) for f in folders))
    caches = (path for path in _caches(home, environ) if within(path, areas) and not _is_home(path, areas, home))
    own = (path for path in map(_real, caches) if not within(path, [*secret, *folders]) and Path(path).is_dir())
    return Hidden(areas, tuple(visible), tuple(_outermost(there)), tuple(_outermost(own)[:_MAX_CACHES]))


def _real(path: str) -> str:
    return os.path.realpath(path)


def _credentials(home: str) -> Iterator[str]:
    for name in _CREDENTIALS:
        path = f"{home}/{name}"
        if os.path.lexists(path):
            yield _real(path)
    for name in _names(home):
        if any(fnmatchcase(name, pattern) for pattern in _CREDENTIAL_NAMES):
            yield _real(f"{home}/{name}")


def _system() -> Iterator[str]:
    yield from _SYSTEM
    for name in _names("/etc/ssh"):
        if name.startswith("ssh_host_") and name.endswith("_key"):
            yield f"/etc/ssh/{name}"


def _readable(home: str, readable: Sequence[str]) -> Iterator[str]:
    for text in readable:
        path = home + text[1:] if text == "~" or text.startswith("~/") else text
        if path.startswith("/"):
            # A parent such as /home stands for the user's own home only.
            yield home if within(home, [os.path.normpath(path)]) else os.path.normpath(path)


def _caches(home: str, environ: Mapping[str, str]) -> Iterator[str]:
    yield from (f"{home}/{name}" for name in _CACHES)
    yield from (os.path.normpath(path) for name in _CACHES_IN_ENVIRONMENT if (path := environ.get(name, "")))


def _toolchains(home: str, areas: Sequence[str], environ: Mapping[str, str], folders: Sequence[str]) -> Iterator[str]:
    """Yield the folders that toolchains need: known ones, and those in `PATH` and some variables.

    Not those in the workspace: its links are the repository's, not the user's.
    """
    yield from (f"{home}/{name}" for name in _TOOLCHAINS)
    for name in _ROOTS_IN_ENVIRONMENT:
        for path in environ.get(name, "").split(os.pathsep):
            # A variable set to a home would show all of it.
            if within(path, areas) and not _is_home(path, areas, home) and not _is_of(path, folders):
                yield from _parts_of(os.path.normpath(path), areas)
    for entry in dict.fromkeys(environ.get("PATH", "").split(os.pathsep)):
        if entry.startswith("/") and not _is_of(entry, folders):
            yield from _reached_folders(os.path.normpath(entry), areas, home, folders)


def _reached_folders(folder: str, areas: Sequence[str], home: str, folders: Sequence[str]) -> Iterator[str]:
    """Yield the folders that one folder of programs needs: its own root and those of the programs it links to."""
    for path in dict.fromkeys((folder, _real(folder))):
        if within(path, areas) and not _is_home(path, areas, home):
            yield from _root_of(path, areas, home)
    is_hidden = within(_real(folder), areas) or within(folder, areas)
    for link in _links_out(folder):
        if is_hidden or within(_real(link), areas):  # of hundreds of links in `/usr/bin` hardly one
            yield from _hops(link, areas, home, folders)


def _links_out(folder: str) -> Iterator[str]:
    """Yield the links of a folder that lead out of it, as those of a tool that is installed apart."""
    try:
        with os.scandir(folder) as entries:
            for entry, _ in zip(entries, range(_MAX_ENTRIES), strict=False):
                target = os.readlink(entry.path) if entry.is_symlink() else ""  # noqa: PTH115 - as it is written
                if "/" in target:
                    yield entry.path
    except OSError:
        return


def _hops(link: str, areas: Sequence[str], home: str, folders: Sequence[str]) -> Iterator[str]:
    """Yield the roots of all places in a chain of links to a program, up to the workspace."""
    for _ in range(_MAX_LINKS):
        if _is_of(str(Path(link).parent), folders):
            return
        if within(link, areas) and not _is_home(str(Path(link).parent), areas, home):
            yield from _root_of(str(Path(link).parent), areas, home)
        try:
            link = os.path.normpath(Path(link).parent / Path(link).readlink())
        except OSError:
            return


def _root_of(folder: str, areas: Sequence[str], home: str) -> Iterator[str]:
    """Yield the installation root of a folder of programs; the folder itself if that is not safe to tell."""
    for name in _TOOLCHAINS:
        if within(folder, [f"{home}/{name}"]):
            yield f"{home}/{name}"
            return
    parent = str(Path(folder).parent)
    # `~/.local/bin` is no part of an installation: its parent has everything else as well.
    is_own = Path(folder).name in _BIN and Path(parent).name not in _SHARED and not _is_home(parent, areas, home)
    yield from (folder, *_parts_of(parent, areas)) if is_own else (folder,)


def _parts_of(prefix: str, areas: Sequence[str]) -> Iterator[str]:
    """Yield what is shown of an installation: all of it in a home, where people install; in a folder for temporary
    files, which may hold anything, what is known to belong to it.
    """
    in_home = within(prefix, [area for area in areas if area not in _COVERED])
    if in_home or any(Path(prefix, sign).exists() for sign in _INSTALLED):
        yield prefix
    else:
        yield from (*parts(prefix), f"{prefix}/pyvenv.cfg")


def _is_home(path: str, areas: Sequence[str], home: str) -> bool:
    """Return whether a folder is a home folder or contains some, so that it must not be shown as a whole."""
    path = os.path.normpath(path)
    above = str(Path(path).parent)
    if within(home, [path]) or path in (*areas, "/run/user") or above == "/run/user":
        return True
    return above in set(areas) & set(_HOMES) - {"/root", home}


def _behind_environments(folders: Sequence[str], home: str, environ: Mapping[str, str]) -> Iterator[str]:
    """Yield what the interpreters behind the virtual environments of the workspace and of `PATH` need."""
    places = [f"{folder}/{name}/bin" for folder in folders for name in _ENVIRONMENTS]
    places += [path for path in environ.get("PATH", "").split(os.pathsep) if path.startswith("/")]
    for place in dict.fromkeys(map(os.path.normpath, places)):
        if Path(place).parent.joinpath("pyvenv.cfg").is_file():
            yield from behind(f"{place}/python", home)


def _is_of(path: str, folders: Sequence[str]) -> bool:
    """Return whether a path is one of the workspace, as it is written or as it really is."""
    return path.startswith("/") and (within(os.path.normpath(path), folders) or within(_real(path), folders))


def _around(folder: str, areas: Sequence[str], home: str) -> tuple[str, ...]:
    """Return what commands read of the repository around a workspace folder; nothing of one that is a whole home."""
    top = top_of(folder)
    return () if top is None or _is_home(top, areas, home) else outer_folders(folder)


def _keys_above(folders: Sequence[str]) -> Iterator[str]:
    """Yield the files with keys in the folders between a workspace folder and the top of its repository."""
    for folder in folders:
        top = top_of(folder)
        above = [] if top is None else [path for path in map(str, Path(folder).parents) if within(path, [top])]
        names = ((path, name) for path in above for name in _names(path) if name != ".git")
        yield from (f"{path}/{name}" for path, name in names if holds_secrets((name,)))


def _names(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry, _ in zip(entries, range(_MAX_ENTRIES), strict=False)]
    except OSError:
        return []


def _outermost(paths: Iterable[str]) -> list[str]:
    """Return `paths` without those inside another one; parents first."""
    kept: list[str] = []
    for path in sorted(set(paths), key=lambda path: path.split("/")):
        if not within(path, kept):
            kept.append(path)
    return kept
