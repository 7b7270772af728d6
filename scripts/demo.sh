#!/bin/sh
# The agent repairs a small project, on the model that runs inside it: `sh scripts/demo.sh`. Fresh Debian, Python 3.11+.
#
# Installs what it needs into .venv and fetches the model (1.1 GB, once). It works in a copy of examples/.
set -eu

cd "$(dirname "$0")/.."
. scripts/prepare.sh

task="The function mean in calculator.py has a bug, so that the test fails. Fix it in calculator.py."

step() {
    printf '\n== %s\n' "$*"
}

run_tests() {
    (cd "$copy" && python -B -m unittest 2>&1)
}

step "Installing into .venv (about a minute, once)"
make_environment
step "The model (1.1 GB, two to ten minutes, once)"
codeagent-lsp model pull

folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT INT TERM
copy="$folder/broken_calculator"
cp -R examples/broken_calculator "$copy"
CODEAGENT_STATE_DIR="$folder/state"
export CODEAGENT_STATE_DIR

step "A project with a failing test"
if run_tests; then
    echo "The tests of the example should fail, but pass." >&2
    exit 1
fi

step "The agent at work (half a minute on two idle cores, some minutes on busy ones)"
began="$(date +%s)"
timeout 900 codeagent-lsp run --yes --workspace "$copy" --set model.provider=embedded "$task" ||
    echo "codeagent-lsp run: exit $?"
took=$(($(date +%s) - began))

step "What changed"
diff -u examples/broken_calculator/calculator.py "$copy/calculator.py" || true

step "The tests again"
if run_tests && cmp -s examples/broken_calculator/test_calculator.py "$copy/test_calculator.py"; then
    printf '\nRepaired in %s s.\n' "$took"
else
    printf '\nNot repaired; the model took %s s.\n' "$took"
    exit 1
fi
