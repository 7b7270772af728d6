# Shell functions that make a checkout ready; sourced by test.sh and demo.sh, in the root of the checkout.
# Only a missing Python and packages that do not install are failures; what else is missing is told by `lacks`.

unset PYTHONDONTWRITEBYTECODE # each server that a test starts would compile all of itself anew
missing=""
emacs=/usr/share/emacs # where Debian puts its packages of Lisp

# Makes .venv, installs the package with the embedded engine and the development tools, and puts .venv on PATH.
make_environment() {
    [ -x .venv/bin/python ] || new_environment || return 1
    if [ ! -e .venv/ready ] || [ pyproject.toml -nt .venv/ready ]; then
        .venv/bin/python -m pip install --quiet --upgrade "pip>=25.1" &&
            .venv/bin/python -m pip install --quiet -e '.[local]' --group dev &&
            touch .venv/ready || return 1
    fi
    PATH="$PWD/.venv/bin:$PATH"
    export PATH
    codeagent-lsp --version
}

new_environment() {
    python="${PYTHON:-}"
    for name in python3 python3.14 python3.13 python3.12 python3.11; do
        [ -n "$python" ] || ! is_new_enough "$name" || python="$name"
    done
    if ! is_new_enough "$python"; then
        echo "This needs Python 3.11 or newer, on PATH or named by PYTHON." >&2
        return 1
    fi
    "$python" -m venv .venv >/dev/null 2>&1 && return 0
    rm -rf .venv # Debian keeps what venv needs in a package of its own; virtualenv brings it along
    "$python" -m pip install --quiet --user virtualenv 2>/dev/null ||
        "$python" -m pip install --quiet --user --break-system-packages virtualenv || {
        echo "Making .venv failed. On Debian: apt-get install python3-venv" >&2
        return 1
    }
    "$python" -m virtualenv --quiet .venv
}

is_new_enough() {
    [ -n "$1" ] && "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

# Fetches what only some tests need, and sets NVIM to a Neovim, CODEAGENT_LANGUAGE_SERVERS to folders of language
# servers and CODEAGENT_HARBOR to a harbor for them.
install_test_parts() {
    install_debian rg=ripgrep bwrap=bubblewrap redis-server=redis-server tmux=tmux podman=podman runc=runc emacs=emacs-nox \
        "$emacs/*/lisp/progmodes/eglot.el* $emacs/site-lisp/elpa/eglot-*=elpa-eglot" "$emacs/site-lisp/elpa/lsp-mode-*=elpa-lsp-mode" \
        Xvnc=tigervnc-standalone-server openbox=openbox stterm=stterm /usr/share/novnc/core/rfb.js=novnc chromium=chromium \
        gopls=gopls go=golang-go
    install_extension || lacks "Node or the npm packages of the VS Code extension"
    if NVIM="$(sh scripts/get-neovim.sh)" && [ -x "$NVIM" ]; then
        export NVIM
    else
        unset NVIM
        lacks Neovim
    fi
    if CODEAGENT_LANGUAGE_SERVERS="$(sh scripts/get-language-servers.sh)"; then
        export CODEAGENT_LANGUAGE_SERVERS
    else
        unset CODEAGENT_LANGUAGE_SERVERS
        lacks "basedpyright, clangd or typescript-language-server"
    fi
    if CODEAGENT_HARBOR="$(sh scripts/get-harbor.sh)"; then
        export CODEAGENT_HARBOR
    else
        unset CODEAGENT_HARBOR
        lacks "Harbor, or a Python 3.12 for it"
    fi
    if CODEAGENT_ACP_SDK="$(sh scripts/get-acp-sdk.sh)"; then
        export CODEAGENT_ACP_SDK
    else
        unset CODEAGENT_ACP_SDK
        lacks "npm, or the TypeScript library of the Agent Client Protocol"
    fi
    # Those after acpx are hundreds of megabytes each.
    for agent in opencode acpx ${CODEAGENT_TEST_VOLUME:+claude codex gemini qwen}; do
        variable="CODEAGENT_$(echo "$agent" | tr a-z A-Z)"
        if program="$(sh scripts/get-agent.sh "$agent")"; then
            export "$variable=$program"
        else
            unset "$variable"
            lacks "npm, or $agent"
        fi
    done
    # Wine is large, and what it shows of Windows is for a release.
    if [ -n "${CODEAGENT_TEST_VOLUME:-}" ] && CODEAGENT_WINDOWS="$(sh scripts/get-windows-python.sh)"; then
        export CODEAGENT_WINDOWS
    else
        unset CODEAGENT_WINDOWS
        [ -z "${CODEAGENT_TEST_VOLUME:-}" ] || lacks "Wine, or a Python for Windows"
    fi
    rust-analyzer --version >/dev/null 2>&1 || lacks rust-analyzer # rustup has a program of that name that is none
    command -v jdtls >/dev/null || lacks jdtls
    if [ "${CODEAGENT_TEST_MODEL:-1}" = 0 ]; then
        CODEAGENT_MODELS_DIR="$PWD/.cache/no-models"
        export CODEAGENT_MODELS_DIR
        lacks "the embedded model (CODEAGENT_TEST_MODEL=0)"
    else
        timeout 1200 codeagent-lsp model pull || lacks "the embedded model"
    fi
}

# Installs what the VS Code extension is built with; 1 where Node or the npm registry is missing.
install_extension() {
    command -v npm >/dev/null || return 1
    (cd editors/vscode && timeout 300 npm ci --silent --no-audit --no-fund) >/dev/null 2>&1 </dev/null
}

# install_debian SIGN=PACKAGE...: installs what is missing of Debian's packages; tells what is missing then. A sign is
# a program, or patterns of paths. All in one call (a minute or two, ten at most); should that fail, each by itself.
install_debian() {
    wanted="$(missing_packages "$@")"
    if [ -n "$wanted" ] && command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
        echo "from Debian: $(echo $wanted)"
        deadline="$(($(date +%s) + 540))"
        apt_get 120 update || true # the lists that are here may do
        apt_get 480 install -y --no-install-recommends $wanted || for package in $wanted; do
            [ "$(date +%s)" -ge "$deadline" ] || apt_get 60 install -y --no-install-recommends "$package" || true
        done
    fi
    for package in $(missing_packages "$@"); do
        lacks "$package"
    done
}

# Prints the packages whose sign is not here.
missing_packages() {
    for pair in "$@"; do
        is_here "${pair%%=*}" || echo "${pair#*=}"
    done
}

is_here() {
    case "$1" in
    /*) [ -n "$(ls -d $1 2>/dev/null)" ] ;;
    *) command -v "$1" >/dev/null ;;
    esac
}

# apt_get SECONDS ARGUMENTS...
apt_get() {
    seconds="$1"
    shift
    DEBIAN_FRONTEND=noninteractive timeout "$seconds" apt-get -qq -o DPkg::Lock::Timeout=60 "$@" >/dev/null 2>&1 </dev/null
}

lacks() {
    echo "not here: $*; the tests that need it are skipped" >&2
    missing="$missing $*;"
}
