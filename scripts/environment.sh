# Sourced by the launchers in this directory. Sets `root` (the checkout) and `python` (the interpreter of its .venv),
# after making .venv from uv.lock where it is missing or stale. The caller's directory is left alone: paths in its
# arguments mean what they meant to the caller. With `needs=--pipeline` set, the packages of that extra are brought in
# too where they are missing.

root=$(CDPATH='' cd -- "$(dirname -- "$(readlink -f -- "$0")")/.." && pwd -P)
python=$root/.venv/bin/python

# Without it `python -m` would look for our packages in the caller's directory first.
export PYTHONSAFEPATH=1

# Compiling all that a server imports takes longer than everything else in its start: it is done once.
unset PYTHONDONTWRITEBYTECODE

# Prints the first Python on PATH that can make the environment. Asks each to run: a name may be there and not work.
find_base_python() {
    for candidate in python3 python3.14 python3.13 python3.12 python3.11; do
        if "$candidate" -I -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' \
            >/dev/null 2>&1; then
            command -v "$candidate"
            return 0
        fi
    done
    return 1
}

# True where .venv is finished and made from this checkout's files as they are now; so its stamp, $1, says.
is_fresh() {
    [ -x "$python" ] && [ -e "$root/.venv/$1" ] &&
        { printf '%s\n' "$root" && cat "$root/pyproject.toml" "$root/uv.lock"; } | cmp -s - "$root/.venv/$1"
}

if ! is_fresh made-from || { [ -n "${needs-}" ] && ! is_fresh pipeline-made-from; }; then
    if ! base_python=$(find_base_python); then
        echo "quorate: needs Python 3.11 or newer with its venv module (Debian, Ubuntu: apt install python3-venv)," \
            "and found none on PATH." >&2
        exit 1
    fi
    "$base_python" -I "$root/scripts/environment.py" ${needs-} || exit $?
fi
