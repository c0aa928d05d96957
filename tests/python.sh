#!/bin/bash
# The Python package from outside, as the wheel that `make wheel` leaves.
#
#     tests/python.sh          what needs no torch, on numpy, in a fresh virtual environment. numpy is the system's,
#                              where that has one, else the Python registry's
#     tests/python.sh torch    the rest on torch, on the CPU, in build/venv-torch, which is filled from the registry
#                              once: operators and modules by both kinds of kernels, two processes, the docs, the examples
#     tests/python.sh gpu      operators on a GPU, with the torch of python3; skipped where there is none
set -eu
cd "$(dirname "$0")/.."
root=$PWD
wheel=$(ls build/fusec-*.whl)
export FUSEC_CACHE_DIR=$root/build/python-cache FUSEC_TUNING_FILE=/dev/null PIP_DISABLE_PIP_VERSION_CHECK=1
unset PYTHONPATH FUSEC_LIBRARY LD_LIBRARY_PATH

install() {    # FOLDER: the wheel, over what is there
    python3 -m pip --python "$1/bin/python" install --quiet --no-deps --no-index --force-reinstall "$wheel"
}
quietly() {    # WHAT COMMAND...: what it says only if it fails
    local what=$1
    "${@:2}" >"build/python.out" 2>&1 || { cat build/python.out; echo "python: $what failed"; exit 1; }
    echo "-- python: $what$(grep -oE '[0-9]+ passed' build/python.out | sed 's/^/: /')"
}
tests() {    # PYTHON ARGUMENT...: of tests/python, away from the checkout's package
    (cd build && "$1" -m pytest -q --show-capture=no -p no:cacheprovider "${@:2}" "$root/tests/python")
}

case ${1:-} in
"")
    rm -rf build/venv
    python3 -m venv --system-site-packages --without-pip build/venv
    build/venv/bin/python -c 'import numpy' 2>/dev/null || python3 -m pip --python build/venv/bin/python install --quiet numpy
    install build/venv
    (cd build && venv/bin/python "$root/tests/python/test_numpy.py") >build/python.out 2>&1 || { cat build/python.out; exit 1; }
    echo "-- python: $(basename "$wheel") without torch, $(grep -o 'Ran [0-9]* tests' build/python.out | tr R r)"
    ;;
torch)
    python=$root/build/venv-torch/bin/python
    [ -x "$python" ] || python3 -m venv build/venv-torch
    "$python" -c 'import numpy, torch, pytest, mypy, expecttest' 2>/dev/null ||
        quietly "torch from the registry" "$python" -m pip install numpy torch pytest mypy expecttest
    install build/venv-torch
    quietly "mypy" sh -c "cd runtime/python && $python -m mypy --cache-dir $root/build/mypy fusec"
    quietly "kernels in C" tests "$python"
    FUSEC_TORCH_KERNELS=ctypes quietly "kernels by ctypes" tests "$python" -k "not slow and not numpy and not docs"
    quietly "two processes" "$python" tests/python/sharded.py
    quietly "examples/pytorch.py" "$python" examples/pytorch.py
    quietly "examples/train.py" "$python" examples/train.py --steps 20 --compile
    quietly "the training step of tests/bench" "$python" tests/bench/torch_step.py --cpu --sizes 64:2x16 --losses 2 --rounds 1 --steps 1
    quietly "programs beside PyTorch" "$python" tests/bench/peers.py --device cpu --no-compile --tiles \
        tests/bench/tiles/*.fuse tests/bench/graphs/*.fuse
    echo 'make check-torch: all passed'
    ;;
gpu)
    python3 -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2>/dev/null ||
        { echo "-- python: skipped on a GPU, python3 has no torch that sees one"; exit 0; }
    rm -rf build/python-gpu
    python3 -m pip install --quiet --no-deps --no-index --target build/python-gpu "$wheel"
    export PYTHONPATH=$root/build/python-gpu
    quietly "operators on the GPU" python3 tests/python/gpu.py
    ;;
*)
    echo "usage: tests/python.sh [torch|gpu]" >&2
    exit 2
    ;;
esac
