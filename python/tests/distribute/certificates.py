"""Certificates for tests of clusters, made by OpenSSL's program."""

import shutil
import subprocess

# TARGET: a step of a session over both tasks. Prints the value, or the error with how many
# seconds it took.
CLIENT = """
import sys, time
import headrace as tf
v1 = tf.compat.v1
with tf.Graph().as_default():
    with v1.device("/job:ps/task:0"):
        v = v1.get_variable("v", initializer=[1.0, 2.0], use_resource=True)
    with v1.device("/job:worker/task:0"):
        step = v1.assign_add(v, [1.0, 1.0])
    since = time.monotonic()
    try:
        with v1.Session(sys.argv[1]) as session:
            session.run(v1.global_variables_initializer())
            session.run(step)
            print("value", session.run(v).tolist())
    except tf.errors.OpError as e:
        print(f"{type(e).__name__} {time.monotonic() - since:.2f} {e.message}")
"""
_VARIABLES = {"CERTIFICATE": "task.pem", "KEY": "task.key", "ROOTS": "ca.pem"}


def _openssl(folder, *arguments):
    subprocess.run(
        ["openssl", *arguments], cwd=folder, check=True, stderr=subprocess.DEVNULL
    )


def make(folder, names="DNS:localhost,IP:127.0.0.1", signer=None):
    """In a folder, which is made: who signs (ca.pem), which is that of the folder
    `signer` where it is given, and one of a task with these names (task.pem, task.key).
    The environment of a process that shows it."""
    folder.mkdir()
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    if signer is None:
        signs = ["-x509", "-days", "2", "-subj", f"/CN=CA of {folder.name}"]
        _openssl(folder, "req", *key, *signs, "-keyout", "ca.key", "-out", "ca.pem")
    else:
        for file in ("ca.key", "ca.pem"):
            shutil.copy(signer / file, folder)
    asks = ["-subj", "/CN=task", "-keyout", "task.key", "-out", "task.csr"]
    _openssl(folder, "req", *key, *asks)
    (folder / "names").write_text(f"subjectAltName={names}\n")
    by = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2"]
    what = ["-req", "-in", "task.csr", "-extfile", "names", "-out", "task.pem"]
    _openssl(folder, "x509", *what, *by)
    return environment(folder)


def environment(folder):
    """The variables by which a process shows the certificate of a folder."""
    return {
        f"HEADRACE_CLUSTER_{name}": str(folder / file)
        for name, file in _VARIABLES.items()
    }
