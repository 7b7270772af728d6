#!/bin/sh
# Installs all that the tests need and runs the checks: `sh scripts/test.sh`. Fresh Debian, Python 3.11 or newer.
#
# Without arguments: lint, format, the rules of this repository, types, the fast tests, and one journey through each
# real part (ten minutes).
# --all adds kills and fuzzing, and what only a real editor can show; that is what CI runs for each change.
# --volumes is --all with every scenario in every editor, the largest tests, and every place that the tests can draw, not
# a fifth of them: each week, and before a release.
#
# CODEAGENT_TEST_MODEL=0  leaves the embedded model (1.1 GB) out; its tests are then skipped, visibly.
# CODEAGENT_TEST_SLOW=0   leaves the slow tests of --all out.
# CODEAGENT_TEST_VSCODE=0 leaves those in a real VS Code out, and code-server and Chromium with them.
set -eu

cd "$(dirname "$0")/.."
. scripts/prepare.sh

case "${1:-}" in
"") all="" ;;
--all) all=yes ;;
--volumes) all=yes && export CODEAGENT_TEST_VOLUME=1 ;;
*)
    echo "usage: sh scripts/test.sh [--all | --volumes]" >&2
    exit 2
    ;;
esac
started="$(date +%s)"
failed=""
summary=""
smaller="and not volume"
[ -z "${CODEAGENT_TEST_VOLUME:-}" ] || smaller=""

# stage NAME COMMAND...: one stage. The next ones run all the same: the table at the end tells all of them.
stage() {
    stage="$1" # no word of what a stage runs: variables of sh have no scope
    shift
    printf '\n== %s: %s\n' "$stage" "$*"
    began="$(date +%s)"
    if "$@"; then verdict="ok"; else verdict="FAILED" failed="$failed $stage"; fi
    summary="$summary$(printf '%-12s %-6s %4s s' "$stage" "$verdict" "$(($(date +%s) - began))")
"
}

finish() {
    printf '\n%s' "$summary"
    printf '%-12s %-6s %4s s\n' "together" "" "$(($(date +%s) - started))"
    [ -z "$smaller" ] || echo "left to --volumes: tests with the mark volume"
    [ -z "$missing" ] || echo "not here, its tests were skipped:$missing"
    if [ -n "$failed" ]; then
        echo "FAILED:$failed"
        exit 1
    fi
    echo "all passed"
    exit 0
}

# The VS Code extension, also in the real editor, where that can be had: `--real` all of it, `--journey` one test.
test_extension() {
    if [ "${CODEAGENT_TEST_VSCODE:-1}" = 0 ]; then
        lacks "the tests in a real VS Code (CODEAGENT_TEST_VSCODE=0)"
    elif timeout 900 sh scripts/get-code-server.sh; then
        timeout 3000 sh editors/vscode/test.sh "$1"
        return
    else
        lacks "code-server, Chromium or Playwright for the tests in a real VS Code"
    fi
    [ ! -d editors/vscode/node_modules ] || sh editors/vscode/test.sh
}

# Of other systems only the package is checked: tests run on this one. Each system has its cache, as that of another one
# counts as out of date; this system takes as long as the two others together, so they are checked beside it.
check_types() {
    (
        mypy --cache-dir .mypy_cache/win32 --platform win32 codeagent_lsp &&
            mypy --cache-dir .mypy_cache/darwin --platform darwin codeagent_lsp
    ) &
    others=$!
    passed=0
    mypy || passed=1
    wait "$others" || passed=1
    return "$passed"
}

stage environment make_environment
[ -z "$failed" ] || finish # nothing runs without it
stage parts install_test_parts

stage lint ruff check .
stage format ruff format --check .
stage tidy pytest tests/tidy
stage types check_types
fast="not slow"
[ -z "$all" ] || [ "${CODEAGENT_TEST_SLOW:-1}" = 0 ] || fast="not slow and not hypothesis" # tried with many examples below
stage fast timeout 1200 pytest -m "$fast" -n 2
if [ -z "$all" ]; then
    stage journeys timeout 900 pytest -m "journey and not vscode"
    stage vscode test_extension --journey
    finish
fi
if [ "${CODEAGENT_TEST_SLOW:-1}" != 0 ]; then
    stage slow timeout 3000 env HYPOTHESIS_PROFILE=many pytest -m "(slow or hypothesis) and not alone $smaller" -n 3 --dist loadfile --durations=8
    stage alone timeout 4200 env HYPOTHESIS_PROFILE=many pytest -m "(slow or hypothesis) and alone $smaller" --durations=8
fi
stage vscode test_extension --real
finish
