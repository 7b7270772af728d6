#!/bin/sh
# Takes the pictures of the VS Code extension by playing scenarios in the real editor: all into the folder that is named,
# those of its README from there into editors/vscode/pictures, the moving one of the project's README into docs/media. Look
# at them before they are committed.
set -eu

cd "$(dirname "$0")/.."
. scripts/prepare.sh
make_environment
PATH="$PWD/.venv/bin:$PATH"
CODEAGENT_VSCODE_RIG="$(sh scripts/get-code-server.sh)"
export CODEAGENT_VSCODE_RIG
taken="${1:-$(mktemp -d)}"
python -m tests.clients.vscode.pictures "$taken"
cp "$taken/dark-modern/review.png" "$taken/dark-modern/plan.png" editors/vscode/pictures/
python -c "import PIL" 2>/dev/null || python -m pip install --quiet --disable-pip-version-check pillow
exec python -m tests.clients.vscode.film "${2:-docs/media/vscode.gif}"
