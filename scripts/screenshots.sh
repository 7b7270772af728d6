#!/bin/sh
# Takes the pictures of the VS Code extension for its README into editors/vscode/pictures, by playing scenarios in the real editor.
set -eu

cd "$(dirname "$0")/.."
CODEAGENT_VSCODE_RIG="$(sh scripts/get-code-server.sh)"
export CODEAGENT_VSCODE_RIG
exec python -m tests.clients.vscode.pictures "${1:-editors/vscode/pictures}"
