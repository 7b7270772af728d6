#!/bin/sh
# Makes a release: `sh scripts/release.sh X.Y.Z [--dry-run]`.
#
# Sets the version everywhere, cuts the changelog, builds package and extension, tries the wheel and the sdist in clean
# environments, commits and tags, and pushes. With `--dry-run` all of it happens in a clone that is thrown away, and
# nothing is pushed. `--build` only builds and tries what is here into dist/, as the release workflow does.
set -eu

cd "$(dirname "$0")/.."
usage() {
    echo "usage: sh scripts/release.sh X.Y.Z [--dry-run] | --build" >&2
    exit 2
}

step() {
    printf '\n== %s\n' "$*"
}

# A clean environment with one file of dist/ answers, says what it lacks, and does a scripted task.
try_in() { # PYTHON FILE
    rm -rf "$work/env" "$work/project"
    "$1" -m venv "$work/env"
    "$work/env/bin/python" -m pip install --quiet --disable-pip-version-check "$2"
    mkdir "$work/project"
    printf 'def twice(x):\n    return x + x + x\n' >"$work/project/sums.py"
    cat >"$work/script.json" <<'SCRIPT'
[{"tool_calls": [{"name": "edit_file", "arguments": {"path": "sums.py", "old_text": "x + x + x", "new_text": "x + x"}}]},
 {"text": "Done."}]
SCRIPT
    export CODEAGENT_STATE_DIR="$work/state"
    rm -rf "$work/state"
    "$work/env/bin/codeagent-lsp" --version
    "$work/env/bin/codeagent-lsp" doctor --workspace "$work/project" >"$work/doctor" || [ $? -eq 1 ] # no model: 1
    "$work/env/bin/codeagent-lsp" run --yes --workspace "$work/project" --set model.provider=scripted \
        --set model.name="$work/script.json" "Fix twice in sums.py" >"$work/run" || { cat "$work/run" && exit 1; }
    grep -q 'return x + x$' "$work/project/sums.py" || { cat "$work/run" && exit 1; }
    echo "ok: $("$1" --version), $(basename "$2")"
}

build() {
    work="$(mktemp -d)"
    trap 'rm -rf "$work"' EXIT
    step "Tools"
    python3 -m venv "$work/tools"
    "$work/tools/bin/pip" install --quiet --disable-pip-version-check build twine check-jsonschema zizmor skillsaw
    step "Workflows and packages for registries"
    "$work/tools/bin/check-jsonschema" --builtin-schema vendor.github-workflows .github/workflows/*.yml
    "$work/tools/bin/check-jsonschema" --builtin-schema vendor.dependabot .github/dependabot.yml
    "$work/tools/bin/zizmor" --offline --quiet --min-severity medium --config .github/zizmor.yml .github/workflows
    step "Package"
    rm -rf dist
    "$work/tools/bin/python" -m build --outdir dist . >"$work/build" 2>&1 || { tail -20 "$work/build" && exit 1; }
    "$work/tools/bin/twine" check --strict dist/*.whl dist/*.tar.gz
    step "Extension"
    rm -rf editors/vscode/server && mkdir editors/vscode/server
    cp dist/*.whl editors/vscode/server/ # which it installs where there is no server
    sh editors/vscode/test.sh >"$work/vscode" 2>&1 || { tail -40 "$work/vscode" && exit 1; }
    rm -rf editors/vscode/server
    cp editors/vscode/codeagent.vsix "dist/codeagent-$version.vsix"
    unzip -l "dist/codeagent-$version.vsix" | grep -q 'extension/server/codeagent_lsp-.*\.whl$' || { echo "the extension carries no wheel" && exit 1; }
    step "In clean environments"
    for python in python3.11 python3.12 python3.13 python3.14; do
        "$python" -c "" >/dev/null 2>&1 || { echo "left out: no $python here" && continue; }
        try_in "$python" dist/*.whl
        try_in "$python" dist/*.tar.gz
    done
    ls -l dist
}

dry=""
version=""
for word in "$@"; do
    case "$word" in
    --dry-run) dry=yes ;;
    --build)
        version="$(python3 -m scripts.version)"
        build
        exit 0
        ;;
    [0-9]*.[0-9]*.[0-9]*) version="$word" ;;
    *) usage ;;
    esac
done
[ -n "$version" ] || usage

if [ -n "$(git status --porcelain)" ]; then
    echo "There are changes that are not committed; a release is made of commits." >&2
    exit 1
fi
if git rev-parse -q --verify "refs/tags/v$version" >/dev/null; then
    echo "There is a tag v$version already." >&2
    exit 1
fi
if [ -n "$dry" ]; then
    aside="$(mktemp -d)"
    git clone --quiet . "$aside/clone"
    cd "$aside/clone"
    echo "dry run in a clone: nothing of it stays"
fi

step "Version $version"
python3 -m scripts.version "$version"
python3 -m scripts.changelog --cut "$version" "$(date -u +%Y-%m-%d)"
build
step "Commit and tag"
git add -A
git -c user.name="${GIT_AUTHOR_NAME:-$(git log -1 --format=%an)}" -c user.email="${GIT_AUTHOR_EMAIL:-$(git log -1 --format=%ae)}" \
    commit --quiet -m "Release $version"
git tag "v$version"
git show --stat --oneline HEAD
if [ -n "$dry" ]; then
    echo "dry run: v$version would be pushed now"
    rm -rf "$aside"
else
    git push --atomic origin HEAD "v$version"
fi
