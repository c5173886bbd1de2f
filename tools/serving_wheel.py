#!/usr/bin/env python3
"""tools/serving_wheel.py PROGRAM LIBRARY BASE_WHEEL FOLDER: puts headrace-serving, the
program, and libheadrace_grpc.so, by which tasks of a cluster talk, into a wheel of their
own in FOLDER, with the libraries that neither a bare Linux nor the wheel of `headrace` has
(gRPC, OpenSSL, libevent and what they need), under names of their own, and with their
licences. What the other wheel carries, protobuf and oneDNN among it, is taken from
there: the two are installed together, of one version.
"""

import base64
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

# What every Linux has that the wheel's platform tag names.
SYSTEM = re.compile(
    r"(linux-vdso|ld-linux.*|libc|libm|libmvec|libdl|librt|libpthread|libstdc\+\+|"
    r"libgcc_s|libz)\.so"
)
PACKAGE = "headrace_serving"
LAUNCHER = '''"""headrace-serving, the model server (docs/serving.md): the program and its libraries."""

import os
import sys

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "headrace-serving")


def main():
    """Becomes the program, with sys.argv's arguments."""
    os.execv(PROGRAM, ["headrace-serving", *sys.argv[1:]])
'''
METADATA = """Metadata-Version: 2.1
Name: headrace-serving
Version: {version}
Summary: headrace-serving, a model server that takes TensorFlow Serving's place
License: Apache-2.0
Requires-Python: >=3.11
Requires-Dist: headrace=={version}
"""
ENTRIES = "[console_scripts]\nheadrace-serving = headrace_serving:main\n"


def run(*command):
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout


def libraries_of(program):
    """{soname: path} of all libraries that the program loads."""
    rows = (line.split() for line in run("ldd", program).splitlines())
    found = {row[0]: row[2] for row in rows if len(row) > 2 and row[2][:1] == "/"}
    return {name: path for name, path in found.items() if not SYSTEM.match(name)}


def in_base(base):
    """{file's name without its mark: name} of the libraries in the other wheel."""
    names = (os.path.basename(n) for n in base.namelist() if ".libs/" in n)
    return {re.sub(r"-[0-9a-f]{8}(?=\.so)", "", name): name for name in names}


def own_name(path):
    """Marked by what it holds, as auditwheel does, so that no other copy is met."""
    with open(path, "rb") as f:
        mark = hashlib.sha256(f.read()).hexdigest()[:8]
    return os.path.basename(path).replace(".so", f"-{mark}.so", 1)


def licence_of(path):
    """What Debian says of the library's licence."""
    for name in (path, path.removeprefix("/usr")):
        done = subprocess.run(["dpkg", "-S", name], capture_output=True, text=True)
        if done.returncode == 0:
            package = done.stdout.split(":")[0]
            return package, f"/usr/share/doc/{package}/copyright"
    sys.exit(f"serving_wheel: no package holds {path}, whose licence is wanted")


def gather(built, base, folder):
    """Puts what is built, its libraries and licences into the folder."""
    place, libs = (os.path.join(folder, PACKAGE + end) for end in ("", ".libs"))
    licences = os.path.join(place, "licences")
    os.makedirs(licences)
    os.makedirs(libs)
    known, files, renamed = in_base(base), [], {}
    libraries = {k: v for path in built for k, v in libraries_of(path).items()}
    for soname, path in libraries.items():
        path = os.path.realpath(path)
        renamed[soname] = known.get(os.path.basename(path))
        if renamed[soname] is None:
            renamed[soname] = own_name(path)
            files.append(os.path.join(libs, renamed[soname]))
            shutil.copy(path, files[-1])
            package, text = licence_of(path)
            shutil.copy(text, os.path.join(licences, package))
            run("patchelf", "--set-soname", renamed[soname], files[-1])
    with open(os.path.join(place, "__init__.py"), "w") as f:
        f.write(LAUNCHER)
    own = [shutil.copy(path, place) for path in built]
    run("strip", *own)
    for file in [*own, *files]:
        needed = run("patchelf", "--print-needed", file).split()
        changes = [
            word
            for name in needed
            if name in renamed
            for word in ("--replace-needed", name, renamed[name])
        ]
        origin = "$ORIGIN" if file not in own else f"$ORIGIN/../{PACKAGE}.libs"
        path = f"{origin}:$ORIGIN/../headrace.libs"
        run("patchelf", "--force-rpath", "--set-rpath", path, *changes, file)
    return [*own, *files]


def platform_of(files, base_name):
    """The platform tag: of the newest C library that a file asks for."""
    versions = {(2, int(base_name.split("_")[2]))}
    for file in files:
        for minor in re.findall(r"GLIBC_2\.(\d+)", run("readelf", "-V", file)):
            versions.add((2, int(minor)))
    return f"manylinux_2_{max(versions)[1]}_{os.uname().machine}"


def write_wheel(folder, version, platform, target):
    info = f"{PACKAGE}-{version}.dist-info"
    os.makedirs(os.path.join(folder, info))
    wheel = (
        "Wheel-Version: 1.0\nGenerator: tools/serving_wheel.py\n"
        f"Root-Is-Purelib: false\nTag: py3-none-{platform}\n"
    )
    texts = {
        "METADATA": METADATA.format(version=version),
        "WHEEL": wheel,
        "entry_points.txt": ENTRIES,
    }
    for name, text in texts.items():
        with open(os.path.join(folder, info, name), "w") as f:
            f.write(text)
    shutil.copy("LICENSE", os.path.join(folder, info))
    made = os.path.join(target, f"{PACKAGE}-{version}-py3-none-{platform}.whl")
    record = []
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as out:
        for where, _, names in sorted(os.walk(folder)):
            for name in sorted(names):
                path = os.path.join(where, name)
                inside = os.path.relpath(path, folder)
                with open(path, "rb") as f:
                    data = f.read()
                digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest())
                digest = digest.decode().rstrip("=")
                record.append(f"{inside},sha256={digest},{len(data)}")
                out.write(path, inside)  # with its mode: the program can be run
        record.append(f"{info}/RECORD,,")
        out.writestr(f"{info}/RECORD", "\n".join(record) + "\n")
    return made


def main():
    *built, base_path, target = sys.argv[1:]
    version, platform = re.match(
        r"headrace-([^-]+)-.*-(manylinux[^-]*)\.whl", os.path.basename(base_path)
    ).groups()
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(base_path) as base:
        files = gather(built, base, folder)
        print(write_wheel(folder, version, platform_of(files, platform), target))


if __name__ == "__main__":
    main()
