#!/bin/bash
# The Python package from outside: the wheel in a fresh virtual environment, what needs no torch on numpy. numpy is the
# system's, where that has one, else the registry's.
#
#     tests/python.sh          after `make wheel`
#     tests/python.sh torch    the rest, in build/venv-torch, which it fills from the registry when it is not there
set -eu
cd "$(dirname "$0")/.."
root=$PWD wheel=$(ls build/fusec-*.whl)
export FUSEC_CACHE_DIR=$root/build/python-cache FUSEC_TUNING_FILE=/dev/null PIP_DISABLE_PIP_VERSION_CHECK=1
unset PYTHONPATH FUSEC_LIBRARY LD_LIBRARY_PATH

fresh() {    # FOLDER PACKAGE...: an environment that has them
    local missing=""
    [ -x "$1/bin/python" ] || python3 -m venv --system-site-packages --without-pip "$1"
    for package in "${@:2}"; do
        "$1/bin/python" -c "import $package" 2>/dev/null || missing="$missing $package"
    done
    [ -z "$missing" ] || python3 -m pip --python "$1/bin/python" install --quiet $missing
}
install() {    # FOLDER: the wheel, over what is there
    python3 -m pip --python "$1/bin/python" install --quiet --no-deps --no-index --force-reinstall "$wheel"
}

case ${1:-} in
"")
    rm -rf build/venv
    fresh build/venv numpy
    install build/venv
    cd build && venv/bin/python "$root/tests/python/test_numpy.py" >python.out 2>&1 || { cat python.out; exit 1; }
    echo "-- python: $(grep -o 'Ran [0-9]* tests' python.out) of $(basename "$wheel") without torch"
    ;;
torch)
    [ -x build/venv-torch/bin/python ] || python3 -m venv build/venv-torch
    for package in numpy torch pytest mypy expecttest; do
        build/venv-torch/bin/python -c "import $package" 2>/dev/null ||
            build/venv-torch/bin/python -m pip install --quiet $package
    done
    install build/venv-torch
    (cd runtime/python && ../../build/venv-torch/bin/python -m mypy fusec)
    for kernels in c ctypes; do
        (cd build && FUSEC_TORCH_KERNELS=$kernels venv-torch/bin/python -m pytest -q -p no:cacheprovider "$root/tests/python" \
            -k "$([ $kernels = c ] && echo '' || echo 'not slow')")
    done
    build/venv-torch/bin/python examples/pytorch.py
    ;;
*)
    echo "usage: tests/python.sh [torch]" >&2
    exit 2
    ;;
esac
