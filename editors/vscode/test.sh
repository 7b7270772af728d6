#!/bin/sh
# Checks, tests and packages the extension: `sh editors/vscode/test.sh`. Needs Node 20 or newer and npm.
#
# With `--installed` it takes the packages that are there. With `--real` also the scenarios in a real VS Code, for which it installs code-server and Chromium.
set -eu

cd "$(dirname "$0")"
root="$(cd ../.. && pwd)"

step() {
    printf '\n== %s\n' "$*"
}

if [ "${1:-}" != "--installed" ]; then
    step "Install"
    npm ci --no-audit --no-fund
fi
step "Types"
npm run --silent check
step "Unit tests"
npm run --silent test
step "Package"
npm run --silent package

if [ "${1:-}" = "--real" ]; then
    step "In a real VS Code"
    if CODEAGENT_VSCODE_RIG="$(sh "$root/scripts/get-code-server.sh")"; then
        export CODEAGENT_VSCODE_RIG
        cd "$root" && python -m pytest tests/clients/vscode -m vscode -rs
    else
        echo "SKIPPED: code-server or Chromium could not be installed (is a registry reachable?)"
    fi
fi
