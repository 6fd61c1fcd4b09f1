#!/bin/sh
# Make the virtual environment .venv, or leave it alone if it is as wanted. Variables, remembered from the last time where unset:
#   PYTHON       the Python to start from (default python3; 3.11 or newer)
#   TORCH_INDEX  a package index to take torch from, for example one with CPU-only wheels (default: the usual index)
set -eu
unset CDPATH
cd -- "$(dirname -- "$0")/../.."

fail() {
    echo "Set-up stopped: $1" >&2
    exit 1
}

command -v git >/dev/null 2>&1 || fail "git is missing; install it with your system's package manager."

# The stamp says what the environment was made from: Python, index, and then the files and the place, since none survives a move.
stamp=.venv/made-from
if [ -f "$stamp" ]; then
    [ -n "${PYTHON:-}" ] || PYTHON=$(sed -n 1p "$stamp")
    [ -n "${TORCH_INDEX:-}" ] || TORCH_INDEX=$(sed -n 2p "$stamp")
fi
python=${PYTHON:-python3}
files=$(cksum requirements.txt pyproject.toml) || fail "requirements.txt or pyproject.toml cannot be read."
wanted=$(printf '%s\n%s\n%s\n%s' "$python" "${TORCH_INDEX:-}" "$files" "$PWD")
if [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ] && .venv/bin/python -c '' 2>/dev/null; then
    exit 0
fi

command -v "$python" >/dev/null 2>&1 || fail "Python is missing: '$python' is not a command; install Python 3.11 or newer, or set PYTHON."
version=$("$python" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])') || fail "'$python' does not run; set PYTHON to a Python 3.11 or newer."
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || fail "Python 3.11 or newer is needed, but '$python' is $version; set PYTHON to a newer one."
"$python" -c 'import venv, ensurepip' 2>/dev/null || fail "'$python' cannot make virtual environments; install its venv module (on Debian: python3-venv)."

echo "Installing the book's packages into .venv (some minutes; the log is .venv/install.log)."
# A complete old environment stands aside until the new one is complete, and comes back if that fails.
if [ -f "$stamp" ]; then
    rm -rf .venv-old && mv .venv .venv-old || fail "the old .venv cannot be set aside."
fi
rm -rf .venv || fail "the old .venv cannot be removed."
restore() {
    if [ ! -f "$stamp" ] && [ -e .venv-old ]; then
        if [ -f .venv/install.log ]; then mv .venv/install.log .venv-old/install.log; fi
        rm -rf .venv && mv .venv-old .venv
    fi
}
trap restore EXIT
trap 'exit 130' INT TERM HUP
"$python" -m venv .venv || fail "'$python' could not make the virtual environment .venv."
install() {
    .venv/bin/python -m pip install --disable-pip-version-check "$@" >>.venv/install.log 2>&1 || {
        tail -n 5 .venv/install.log >&2
        fail "a package could not be installed; the last lines of .venv/install.log are above. If they speak of a connection, check the network and run the same command again."
    }
}
if [ -n "${TORCH_INDEX:-}" ]; then
    install --no-deps --index-url "$TORCH_INDEX" "$(sed -n 's/^\(torch==[^ ]*\).*/\1/p' requirements.txt)"
fi
install -r requirements.txt
install --no-deps --no-build-isolation -e .
# JupyterLab opens the MyST pages as notebooks.
.venv/bin/jupytext-config --settings-file .venv/etc/jupyter/labconfig/default_setting_overrides.json set-default-viewer markdown myst ||
    fail "JupyterLab's settings could not be written to .venv/etc/jupyter."
# Matplotlib's list of fonts; whoever makes it on a slow machine prints that it does, which no page has a place for.
MPLCONFIGDIR=.venv/share/matplotlib .venv/bin/python -c 'import matplotlib.font_manager' 2>>.venv/install.log ||
    fail "matplotlib cannot be imported; .venv/install.log says why."
printf '%s\n' "$wanted" >"$stamp" || fail ".venv cannot be written."
rm -rf .venv-old || fail ".venv-old cannot be removed."
