"""tf.load_op_library: a user's ops, written in C (tests/c/library/ops.c)."""

import os
import pathlib
import shutil
import subprocess
import sys
import threading

import headrace as tf
import numpy as np
import pytest

ROOT = pathlib.Path(__file__).parents[3]
SOURCE = ROOT / "tests" / "c" / "library" / "ops.c"
COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


def compiled(source, target):
    """The library, compiled as a user compiles it: nothing is linked to it."""
    if COMPILER is None:
        pytest.skip("no C compiler")
    command = [
        COMPILER,
        "-std=c11",
        "-shared",
        "-fPIC",
        *tf.sysconfig.get_compile_flags(),
    ]
    # What a sanitizer puts into this process is nothing for the compiler.
    env = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    subprocess.run([*command, str(source), "-o", str(target)], check=True, env=env)
    return str(target)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return compiled(SOURCE, tmp_path_factory.mktemp("library") / "ops.so")


@pytest.fixture(scope="module")
def ops(path):
    return tf.load_op_library(path)


def test_what_the_module_has(ops, path):
    assert ops.my_zero_out is ops.MyZeroOut
    assert "MyScale" in [op.name for op in ops.OP_LIST.op]
    assert len(ops.OP_LIST.op) == 9
    assert ops.LIB_HANDLE
    assert tf.load_op_library(path) is ops
    assert ops.my_scale.__name__ == "my_scale"


def test_eager(ops):
    assert ops.my_zero_out([[5, 4], [3, 2]]).numpy().tolist() == [[5, 0], [0, 0]]
    assert ops.my_scale([1.5, 2.0]).numpy().tolist() == [3, 4]
    assert ops.my_scale(x=[1, 2], factor=-3).numpy().tolist() == [-3, -6]
    assert ops.my_shout(["a", "ein längerer Text als in der Zelle Platz hat"]).numpy()[
        1
    ] == ("ein längerer Text als in der Zelle Platz hat!".encode())
    assert ops.my_sum([1.0, 2.0, 3.5]).numpy() == 6.5
    assert ops.my_identity(np.zeros([0, 3])).shape == [0, 3]
    assert ops.my_later([1.0]).numpy() == [1]


def test_errors(ops):
    with pytest.raises(tf.errors.DataLossError, match="nothing is left of it"):
        ops.my_failure([1.0])
    with pytest.raises(tf.errors.InvalidArgumentError, match="Missing 0-th output"):
        ops.my_nothing([1.0])
    with pytest.raises(tf.errors.InvalidArgumentError, match="13 is no factor"):
        ops.my_scale([1.0], factor=13)
    with pytest.raises((TypeError, tf.errors.InvalidArgumentError)):
        ops.my_scale(["text"])
    with pytest.raises(TypeError, match="missing"):
        ops.my_zero_out()


def test_functions(ops):
    @tf.function
    def f(x):
        y = x
        for _ in tf.range(3):
            y = ops.my_scale(ops.my_identity(y) + 1.0)
        return y

    assert f(tf.constant([0.0, 1.0])).numpy().tolist() == [14, 22]

    @tf.function(input_signature=[tf.TensorSpec([None, 2])])
    def same(x):
        y = ops.my_later(ops.my_identity(x))
        assert y.shape.as_list() == [None, 2]
        return ops.my_identity(y) + x

    assert same(tf.ones([3, 2])).numpy().sum() == 12

    @tf.function
    def failing(x):
        return ops.my_failure(x)

    with pytest.raises(tf.errors.DataLossError, match="nothing is left of it"):
        failing(tf.constant([1.0]))


def test_state(ops):
    @tf.function
    def twice():
        return ops.my_counter(), ops.my_counter()

    counts = [n.numpy() for _ in range(3) for n in twice()]
    assert counts == sorted(counts) and len(set(counts)) >= 3


def test_gradients(ops):
    @tf.RegisterGradient("MyScale")
    def gradient(op, grad):
        return ops.my_scale(grad, factor=op.get_attr("factor"))

    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(ops.my_scale(x, factor=7) * x)
    assert tape.gradient(y, x).numpy().tolist() == [14, 28]

    @tf.function
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = ops.my_scale(x, factor=7)
        return tape.gradient(y, x)

    assert f(x).numpy().tolist() == [7, 7]
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = ops.my_identity(x)
    with pytest.raises(LookupError, match="MyIdentity"):
        tape.gradient(y, x)


def test_graphs_and_sessions(ops):
    graph = tf.Graph()
    with graph.as_default():
        x = tf.compat.v1.placeholder(tf.float32, [None])
        y = ops.my_scale(x, factor=4, name="scaled")
        assert y.op.type == "MyScale" and y.shape.as_list() == [None]
    proto = graph.as_graph_def()
    again = tf.Graph()
    with again.as_default():
        (found,) = tf.import_graph_def(proto, return_elements=["scaled:0"])
        with tf.compat.v1.Session() as session:
            fed = {"import/" + x.name: [1.0, 2.0]}
            assert session.run(found, fed).tolist() == [4, 8]


def test_saved_models(ops, path, tmp_path):
    class Model(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None])])
        def __call__(self, x):
            return ops.my_scale(x, factor=3)

    tf.saved_model.save(Model(), str(tmp_path / "m"))
    loaded = tf.saved_model.load(str(tmp_path / "m"))
    assert loaded(tf.constant([2.0])).numpy() == [6]
    program = f"""
import headrace as tf
try:
    tf.saved_model.load({str(tmp_path / "m")!r})
except Exception as e:
    assert "MyScale" in str(e), e
else:
    raise SystemExit("loaded")
tf.load_library({path!r})
print(tf.saved_model.load({str(tmp_path / "m")!r})(tf.constant([5.0])).numpy())
"""
    out = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True
    )
    assert out.stdout == "[15.]\n", out.stderr


def test_threads(ops):
    wrong = []

    def work():
        for i in range(200):
            if ops.my_scale([i], factor=2).numpy()[0] != 2 * i:
                wrong.append(i)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_libraries_that_are_none(tmp_path):
    with pytest.raises(tf.errors.NotFoundError, match="cannot open shared object"):
        tf.load_op_library("/no/such.so")
    with pytest.raises(OSError, match="does not exist"):
        tf.load_library(str(tmp_path / "none"))
    (tmp_path / "text.so").write_text("no library")
    with pytest.raises(tf.errors.NotFoundError, match="text.so"):
        tf.load_library(str(tmp_path))
    source = tmp_path / "classes.cc"
    source.write_text(
        "namespace tensorflow { struct Op { Op(); }; }\nstatic tensorflow::Op op;\n"
    )
    library = compiled_as_cpp(source, tmp_path / "classes.so")
    with pytest.raises(tf.errors.NotFoundError, match="tensorflow/c/kernels.h"):
        tf.load_op_library(library)


def compiled_as_cpp(source, target):
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    subprocess.run(
        [compiler, "-shared", "-fPIC", str(source), "-o", str(target)], check=True
    )
    return str(target)


def test_a_name_is_taken_once(ops, tmp_path):
    source = tmp_path / "again.c"
    source.write_text("""
#include <stdio.h>
#include "tensorflow/c/ops.h"
int code;
__attribute__((constructor)) static void again(void) {
  TF_Status* s = TF_NewStatus();
  TF_RegisterOpDefinition(TF_NewOpDefinitionBuilder("MyScale"), s);
  code = TF_GetCode(s);
  TF_DeleteStatus(s);
}
""")
    import ctypes

    path = compiled(source, tmp_path / "again.so")
    module = tf.load_op_library(path)
    assert len(module.OP_LIST.op) == 0
    assert ctypes.c_int.in_dll(ctypes.CDLL(path), "code").value == 6


def test_what_libraries_are_compiled_with(path):
    include = pathlib.Path(tf.sysconfig.get_include())
    assert (include / "tensorflow" / "c" / "kernels.h").exists()
    assert tf.sysconfig.get_compile_flags() == [f"-I{include}"]
    assert tf.sysconfig.get_link_flags() == []
    assert not tf.sysconfig.get_build_info()["is_cuda_build"]
