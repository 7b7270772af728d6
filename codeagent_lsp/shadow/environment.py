"""The environment variables of commands: what tools need, no secrets, no access to services, no prompts. Pure
functions.

Not here: which folders it sees (`hiding.py`).
"""

# ruff: noqa: SIM905 - word lists read better as text

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

FIXED: Mapping[str, str] = MappingProxyType(
    {
        # no user pages, sees colours, or answers
        "TERM": "dumb",
        "NO_COLOR": "1",
        "PAGER": "cat",
        "MANPAGER": "cat",
        "SYSTEMD_PAGER": "cat",
        "GIT_PAGER": "cat",
        "GIT_TERMINAL_PROMPT": "0",
        # `true` answers nothing, so a request for a password fails at once and does not wait.
        "GIT_ASKPASS": "true",
        "SSH_ASKPASS": "true",
        "GIT_EDITOR": "true",
        "EDITOR": "true",
        "VISUAL": "true",
        "GIT_OPTIONAL_LOCKS": "0",
        "DEBIAN_FRONTEND": "noninteractive",
        "PIP_NO_INPUT": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "NPM_CONFIG_FUND": "false",
        "NPM_CONFIG_UPDATE_NOTIFIER": "false",
        # what is printed comes when it is printed
        "PYTHONUNBUFFERED": "1",
    }
)

_NEEDED = frozenset(
    """
    PATH HOME USER LOGNAME SHELL LANG LANGUAGE TZ TZDIR TMPDIR HOSTNAME
    XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME XDG_DATA_DIRS XDG_CONFIG_DIRS
    VIRTUAL_ENV CONDA_PREFIX CONDA_DEFAULT_ENV CONDA_EXE CONDA_PYTHON_EXE MAMBA_ROOT_PREFIX MAMBA_EXE
    PYENV_ROOT PYENV_VERSION PYENV_VIRTUAL_ENV PYTHONPATH PYTHONHOME PYTHONUTF8 PYTHONDONTWRITEBYTECODE
    PYTHONHASHSEED PYTHONWARNINGS PIPX_HOME PIPENV_VENV_IN_PROJECT POETRY_HOME UV_CACHE_DIR UV_PYTHON
    UV_PYTHON_INSTALL_DIR UV_TOOL_DIR RYE_HOME PIXI_HOME
    NVM_DIR NVM_BIN NVM_INC NODE_ENV NODE_PATH NODE_VERSION NODE_EXTRA_CA_CERTS VOLTA_HOME FNM_DIR
    FNM_MULTISHELL_PATH N_PREFIX PNPM_HOME COREPACK_HOME BUN_INSTALL DENO_DIR DENO_INSTALL DENO_INSTALL_ROOT
    GOPATH GOROOT GOBIN GOCACHE GOMODCACHE GOFLAGS GOOS GOARCH GOARM GOAMD64 GOPROXY GOSUMDB GOPRIVATE GONOPROXY
    GONOSUMDB GOTOOLCHAIN GOWORK GO111MODULE GOENV GOEXPERIMENT GOMAXPROCS GODEBUG
    CARGO_HOME CARGO_TARGET_DIR CARGO_BUILD_JOBS CARGO_INCREMENTAL RUSTUP_HOME RUSTUP_TOOLCHAIN RUSTFLAGS
    RUST_BACKTRACE
    JAVA_HOME JDK_HOME JRE_HOME CLASSPATH M2_HOME MAVEN_HOME GRADLE_HOME GRADLE_USER_HOME KOTLIN_HOME SCALA_HOME
    SBT_HOME SDKMAN_DIR ANDROID_HOME ANDROID_SDK_ROOT ANDROID_NDK_HOME
    GEM_HOME GEM_PATH RBENV_ROOT RBENV_VERSION RUBYLIB BUNDLE_PATH rvm_path MY_RUBY_HOME
    COMPOSER_HOME PHPENV_ROOT PERL5LIB PERL_LOCAL_LIB_ROOT DOTNET_ROOT DOTNET_CLI_HOME NUGET_PACKAGES
    GHCUP_INSTALL_BASE_PREFIX STACK_ROOT CABAL_DIR OPAMROOT OPAM_SWITCH_PREFIX OCAML_TOPLEVEL_PATH MIX_HOME HEX_HOME
    ASDF_DIR ASDF_DATA_DIR MISE_DATA_DIR MISE_SHELL JULIA_DEPOT_PATH R_HOME R_LIBS R_LIBS_USER LUA_PATH LUA_CPATH
    CC CXX CPP LD AR CFLAGS CXXFLAGS CPPFLAGS LDFLAGS CPATH C_INCLUDE_PATH CPLUS_INCLUDE_PATH LIBRARY_PATH
    PKG_CONFIG_PATH CMAKE_PREFIX_PATH CMAKE_GENERATOR CMAKE_BUILD_PARALLEL_LEVEL ACLOCAL_PATH
    CUDA_HOME CUDA_PATH CUDA_VISIBLE_DEVICES ROCM_PATH OMP_NUM_THREADS
    HOMEBREW_PREFIX HOMEBREW_CELLAR HOMEBREW_REPOSITORY SDKROOT DEVELOPER_DIR MACOSX_DEPLOYMENT_TARGET
    NIX_PATH NIX_PROFILES NIX_SSL_CERT_FILE LOCALE_ARCHIVE SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE
    CURL_CA_BUNDLE SOURCE_DATE_EPOCH
    HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY http_proxy https_proxy all_proxy no_proxy
    """.split()
)
_NEEDED_PREFIXES = ("LC_", "CGO_")
# Without these, programs of Windows do not start, or find no place for what they write.
_NEEDED_ON_WINDOWS = frozenset(
    """
    SYSTEMROOT SYSTEMDRIVE WINDIR COMSPEC PATHEXT TEMP TMP USERPROFILE USERNAME APPDATA LOCALAPPDATA PROGRAMDATA
    PROGRAMFILES PROGRAMFILES(X86) PROGRAMW6432 NUMBER_OF_PROCESSORS PROCESSOR_ARCHITECTURE HOMEDRIVE HOMEPATH
    """.split()
)

_SECRET_NAME = re.compile(
    r"TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|AUTH|PRIVATE_KEY|API_?KEY|ACCESS_?KEY|COOKIE|BEARER|"
    r"(?:^|_)(?:KEY|KEYS|PASS|PWD|PAT|DSN)(?:_|$)",
    re.IGNORECASE,
)
_URL_WITH_USER = re.compile(r"://[^/\s@]*@")
# Tokens by the heads that their makers give them (OpenAI, Stripe, GitHub, GitLab, Slack, npm, PyPI, AWS, Google,
# Hugging Face), PEM blocks, JWTs, and HTTP credentials.
_SECRET_VALUE = re.compile(
    r"-----BEGIN "
    r"|\b(?:sk|pk|rk)[-_][\w-]{16,}"
    r"|\bgh[a-z]_\w{16,}|\bgithub_pat_\w{16,}|\bglpat-[\w-]{16,}|\bxox[a-z]-[\w-]{10,}|\bnpm_\w{20,}|\bpypi-[\w-]{20,}"
    r"|\bA[KS]IA[0-9A-Z]{16}\b|\bAIza[\w-]{30,}|\bhf_\w{20,}"
    r"|\beyJ[\w-]{8,}\.[\w-]{8,}\."
    r"|(?i:\b(?:bearer|basic)\s+[\w.+/=-]{12,})"
)


def with_own_programs_last(environment: Mapping[str, str], folders: Iterable[str]) -> dict[str, str]:
    """Return the environment with PATH entries that are inside these folders or relative moved to the end, after those
    of the system; empty ones are dropped.
    """
    inside = [f"{folder}{os.sep}" for folder in folders]
    entries = environment.get("PATH", "").split(os.pathsep)
    own = [entry for entry in entries if not Path(entry).is_absolute() or f"{entry}{os.sep}".startswith(tuple(inside))]
    others = [entry for entry in entries if entry not in own]
    return {**environment, "PATH": os.pathsep.join([*others, *filter(None, own)])}


def scrub_environment(environ: Mapping[str, str], extra: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    """Return the environment of a command, derived from `environ`.

    Only variables that tools are known to need pass, and of these none that looks secret. Variables that lead to a
    socket or make programs load code (`LD_*`, `BASH_ENV`, `NODE_OPTIONS`, `GIT_*`, ...) are not in the list. `extra`
    comes from this program, not from the user's environment, passes unchanged and replaces others of the same name.
    """
    passed = {name: value for name, value in environ.items() if _passes(name, value)}
    passed["PATH"] = _absolute(passed.get("PATH", "")) or DEFAULT_PATH
    return {**passed, **_locale(passed), **FIXED, **extra}


def is_secret(name: str, value: str) -> bool:
    """Return whether an environment variable looks secret: by a word in its name such as `TOKEN`, or by a value that
    has the form of a key or is a URL with a user. A value that begins with `/` counts as a path.
    """
    if _SECRET_NAME.search(name) or _URL_WITH_USER.search(value):
        return True
    return not value.startswith("/") and bool(_SECRET_VALUE.search(value))  # folders may have any name


def _passes(name: str, value: str) -> bool:
    needed = name in _NEEDED or name.startswith(_NEEDED_PREFIXES)
    needed = needed or (os.name == "nt" and name.upper() in _NEEDED_ON_WINDOWS)
    return needed and "\0" not in value and not is_secret(name, value)


def _absolute(path: str) -> str:
    """Return PATH without relative and empty entries, by which a file of the workspace could replace any program."""
    return os.pathsep.join(entry for entry in path.split(os.pathsep) if Path(entry).is_absolute())


def _locale(passed: Mapping[str, str]) -> dict[str, str]:
    """Return variables that make the locale UTF-8; none if it is already."""
    # The order in which the C library looks.
    chosen = passed.get("LC_ALL") or passed.get("LC_CTYPE") or passed.get("LANG") or ""
    if re.search(r"utf-?8", chosen, re.IGNORECASE):
        return {}
    # `LC_ALL` overrides the others, so where it is set, only it can help.
    return {"LC_ALL": "C.UTF-8"} if passed.get("LC_ALL") else {"LC_CTYPE": "C.UTF-8"}
