"""backend.py: how pip builds the package (PEP 517), with nothing but the standard library and make.

`make` builds libfusec and the torch kernels; the wheel holds them beside the Python files. It fits every Python 3.10
and later (they are loaded by ctypes), and every glibc from the newest one that a symbol of them asks for.
"""
import base64
import hashlib
import os
import platform
import re
import subprocess
import sys
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
LIBRARIES = {"libfusec.so.0": "build/libfusec.so.0", "libfusec_torch.so": "build/libfusec_torch.so"}
# The libraries that a manylinux wheel may take from the system (PEP 600).
SYSTEM = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}


def version():
    return re.search(r'#define FUSEC_VERSION "(.*)"', (ROOT / "runtime/fusec.h").read_text()).group(1)


def make():
    if (ROOT / "Makefile").exists() and not os.environ.get("FUSEC_BUILT"):
        subprocess.run(["make", "-C", str(ROOT), "-j2", "build/libfusec.so", "build/libfusec_torch.so"], check=True, stdout=sys.stderr)


def tag():
    """py3-none-manylinux_2_34_x86_64: the newest GLIBC_2.N among the symbols that the libraries need."""
    minor = 17
    for path in LIBRARIES.values():
        listed = subprocess.run(["objdump", "-p", str(ROOT / path)], check=True, capture_output=True, text=True).stdout
        needed = set(re.findall(r"NEEDED\s+(\S+)", listed)) - SYSTEM - set(LIBRARIES)
        if needed:
            raise SystemExit(f"{path} needs {', '.join(needed)}, which no manylinux wheel may")
        minor = max([minor, *(int(n) for n in re.findall(r"GLIBC_2\.(\d+)", listed))])
    return f"py3-none-manylinux_2_{minor}_{platform.machine()}"


def metadata():
    return f"""Metadata-Version: 2.1
Name: fusec
Version: {version()}
Summary: Fusion compiler for normalization graphs: .fuse programs on numpy and PyTorch
License: {'MIT' if 'MIT' in (ROOT / 'LICENSE').read_text()[:200] else 'see LICENSE'}
Requires-Python: >=3.10
Provides-Extra: torch
Requires-Dist: torch>=2.7; extra == "torch"
"""


def package_files():
    """Path in the wheel, and content."""
    for path in sorted((HERE / "fusec").rglob("*")):
        if path.suffix in {".py", ".fuse", ".typed"} and "__pycache__" not in path.parts:
            yield str(path.relative_to(HERE)), path.read_bytes()
    for name, built in LIBRARIES.items():
        yield f"fusec/{name}", (ROOT / built).read_bytes()


def write_wheel(folder, files):
    info = f"fusec-{version()}.dist-info"
    files = [*files, (f"{info}/METADATA", metadata().encode()), (f"{info}/LICENSE", (ROOT / "LICENSE").read_bytes()),
             (f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: fusec\nRoot-Is-Purelib: false\nTag: {tag()}\n".encode())]
    name = f"fusec-{version()}-{tag()}.whl"
    record = ""
    with zipfile.ZipFile(Path(folder) / name, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as wheel:
        for path, content in files:
            entry = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))    # the same wheel from the same sources
            entry.external_attr = (0o755 if ".so" in path else 0o644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record += f"{path},sha256={digest},{len(content)}\n"
        wheel.writestr(f"{info}/RECORD", record + f"{info}/RECORD,,\n")
    return name


# ---- what pip calls ----

def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    make()
    return write_wheel(wheel_directory, package_files())


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    name = f"fusec-{version()}.dist-info"
    Path(metadata_directory, name).mkdir()
    Path(metadata_directory, name, "METADATA").write_text(metadata())
    return name


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    make()
    return write_wheel(wheel_directory, [("fusec.pth", f"{HERE}\n".encode())])


def build_sdist(sdist_directory, config_settings=None):
    raise NotImplementedError("fusec is built from a checkout, `pip install ./runtime/python`; there is no sdist")


if __name__ == "__main__":
    print(Path(sys.argv[1]) / build_wheel(sys.argv[1]))
