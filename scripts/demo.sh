#!/bin/sh
# The agent works on three small tasks, on the model that runs inside it: `sh scripts/demo.sh [SEED]`. Fresh Debian, Python 3.11+.
#
# A fault to repair, something to add, something to rename: drawn by the seed out of the tasks of tests/bench, so that nobody
# chose them for the model. Installs what it needs into .venv and fetches the model (1.1 GB, once).
set -eu

cd "$(dirname "$0")/.."
. scripts/prepare.sh

seed="${1:-1}"

step() {
    printf '\n== %s\n' "$*"
}

# work KIND FOLDER WORDS: lets the agent do one task; prints what the user would see, then what the tests say.
work() {
    step "Task $((tasks + 1)): $1"
    shift
    cp -R "$1" "$1.before"
    timeout 900 codeagent-lsp run --yes --workspace "$1" --set model.provider=embedded "$2" || echo "codeagent-lsp run: exit $?"
    diff -ru "$1.before" "$1" | sed "s|$folder/||g" || true
    rm -rf "$1.before"
    tasks=$((tasks + 1))
    if python -m tests.bench.tasks --check "$1" 2>/dev/null; then solved=$((solved + 1)); fi
}

step "Installing into .venv (about a minute, once)"
make_environment
step "The model (1.1 GB, two to ten minutes, once)"
codeagent-lsp model pull

folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT INT TERM
CODEAGENT_STATE_DIR="$folder/state"
export CODEAGENT_STATE_DIR
tasks=0
solved=0

step "Three tasks, drawn by the seed $seed (half a minute to two for each on two idle cores, more on busy ones)"
for kind in fault addition rename; do
    python -m tests.bench.tasks --seed "$seed" --count 1 --kinds "$kind" --sizes small,medium --into "$folder/$kind" >"$folder/drawn"
    tab="$(printf '\t')"
    while IFS="$tab" read -r place words; do
        work "$kind" "$place" "$words" </dev/null
    done <"$folder/drawn"
done

printf '\nSolved %s of %s tasks. Another seed draws others: sh scripts/demo.sh 2\n' "$solved" "$tasks"
