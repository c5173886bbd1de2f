"""The client: one object for all protocols and transports."""

import collections
import http.client
import random
import time
from collections.abc import Mapping
from urllib.parse import urlsplit

import numpy as np

from headrace.context import errors
from headrace.serving import failures, tensors
from headrace.serving.grpc_wire import GrpcWire
from headrace.serving.http_wire import HttpWire
from headrace.serving.v1_grpc import V1Grpc
from headrace.serving.v1_rest import V1Rest
from headrace.serving.v2_grpc import V2Grpc
from headrace.serving.v2_rest import V2Rest

_Tls = collections.namedtuple("_Tls", "ca_file certificate_file key_file")
_Target = collections.namedtuple("_Target", "model version label signature")
# Seconds before the second try and at most before one; doubled in between.
_FIRST_WAIT, _LONGEST_WAIT = 0.05, 2.0
_PROTOCOLS = {
    ("grpc", "v1"): V1Grpc,
    ("http", "v1"): V1Rest,
    ("grpc", "v2"): V2Grpc,
    ("http", "v2"): V2Rest,
}


class Deadline:
    """When a call ends, all its tries together."""

    def __init__(self, seconds):
        self._end = None if seconds is None else time.monotonic() + seconds

    def left(self):
        """Seconds, more than 0; None: no end. DeadlineExceededError behind it."""
        if self._end is None:
            return None
        left = self._end - time.monotonic()
        if left <= 0:
            raise failures.late("the deadline passed")
        return left


class Client:
    """A client of one model server, which threads may share.

    Args:
      target: "HOST:PORT", "grpc://HOST:PORT" or "unix:PATH" for gRPC;
        "http://HOST:PORT" for REST; "grpcs://..." and "https://..." with TLS.
      protocol: "v1", TensorFlow Serving's, or "v2", the Open Inference Protocol.
      timeout: seconds that a call may take with all its tries; None: no limit.
      token: sent as "authorization: Bearer TOKEN".
      ca_file: certificates that the server's is checked against (PEM), in place of
        the system's. This and the next two go with "grpcs:" and "https:" alone.
      certificate_file, key_file: the client's own certificate and its key (PEM).
      retries: further tries, with growing waits, after UNAVAILABLE.

    Calls raise the exceptions of `tf.errors`: what the server says, UnavailableError
    where it cannot be reached, DeadlineExceededError after `timeout`.
    """

    def __init__(
        self,
        target,
        *,
        protocol="v1",
        timeout=60.0,
        token=None,
        ca_file=None,
        certificate_file=None,
        key_file=None,
        retries=3,
    ):
        if protocol not in ("v1", "v2"):
            raise ValueError(f'protocol is to be "v1" or "v2", not {protocol!r}')
        if (certificate_file is None) != (key_file is None):
            raise ValueError("certificate_file and key_file belong together")
        kind, secure, address = _address(target)
        tls = _Tls(ca_file, certificate_file, key_file) if secure else None
        if not secure and (ca_file or certificate_file):
            raise ValueError(f"certificates need grpcs:// or https://, not {target!r}")
        sent = {} if token is None else {"authorization": f"Bearer {token}"}
        if kind == "http":
            self._wire = HttpWire(*address, tls, sent)
        else:
            self._wire = GrpcWire(address, tls, sent.items())
        self._protocol = _PROTOCOLS[kind, protocol](self._wire)
        self._timeout, self._retries = timeout, retries

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Closes the connections; calls under way may fail."""
        self._wire.close()

    def predict(
        self,
        model,
        inputs,
        *,
        version=None,
        label=None,
        signature=None,
        outputs=None,
        timeout=None,
    ):
        """Runs a signature of a model.

        Args:
          model: the model's name.
          inputs: {name: array, or what np.asarray takes}; a value alone where the
            signature has one input.
          version, label: one of the two, or neither for the newest version.
          signature: its name; None: "serving_default".
          outputs: names of the outputs that are wanted; None: all.
          timeout: seconds, in place of the client's.

        Returns:
          a Prediction: {name: NumPy array}, with the version that answered.
        """
        target = _target(model, version, label, signature)

        def ask(deadline):
            given = self._named(target, inputs, deadline)
            arrays = {n: tensors.array_of(n, value) for n, value in given.items()}
            return self._protocol.predict(target, arrays, outputs, deadline)

        return self._call(ask, timeout)

    def _named(self, target, inputs, deadline):
        if isinstance(inputs, Mapping):
            return inputs
        signatures = self._protocol.metadata(target, deadline)
        signature = signatures.get(target.signature or "serving_default")
        if signature is None or len(signature.inputs) != 1:
            raise failures.invalid("inputs are to be given by name: {name: array}")
        return {next(iter(signature.inputs)): inputs}

    def classify(
        self,
        model,
        examples,
        *,
        context=None,
        version=None,
        label=None,
        signature=None,
        timeout=None,
    ):
        """Classifies examples, each {feature: number, str, bytes, or a list of one
        kind}, as is `context`, which all share. [[(label, score), ...], ...]"""
        target, rows = _target(model, version, label, signature), list(examples)
        return self._call(
            lambda deadline: self._protocol.classify(target, rows, context, deadline),
            timeout,
        )

    def regress(
        self,
        model,
        examples,
        *,
        context=None,
        version=None,
        label=None,
        signature=None,
        timeout=None,
    ):
        """A float32 array, a value an example (as classify takes them)."""
        target, rows = _target(model, version, label, signature), list(examples)
        values = self._call(
            lambda deadline: self._protocol.regress(target, rows, context, deadline),
            timeout,
        )
        return np.array(values, np.float32)

    def metadata(self, model, *, version=None, label=None, timeout=None):
        """{name: Signature} of a model."""
        target = _target(model, version, label, None)
        return self._call(lambda d: self._protocol.metadata(target, d), timeout)

    def status(self, model, *, version=None, timeout=None):
        """[VersionStatus] of a model's versions, as the server lists them."""
        target = _target(model, version, None, None)
        return self._call(lambda d: self._protocol.status(target, d), timeout)

    def ready(self, model=None, *, version=None, timeout=None):
        """True where the server, or that model, takes requests: asked once. A server
        that cannot be reached is not ready."""
        deadline = Deadline(self._timeout if timeout is None else timeout)
        try:
            if model is None:
                return self._try(self._protocol.server_ready, deadline)
            target = _target(model, version, None, None)
            return self._try(lambda d: self._protocol.model_ready(target, d), deadline)
        except errors.UnavailableError:
            return False

    def _try(self, ask, deadline):
        """One try: what goes wrong on the way as the exception that says so."""
        try:
            return ask(deadline)
        except TimeoutError:
            raise failures.late("the deadline passed") from None
        except (OSError, http.client.HTTPException) as e:
            raise failures.unavailable(f"no answer from the server: {e!r}") from None

    def _call(self, ask, timeout):
        deadline = Deadline(self._timeout if timeout is None else timeout)
        tried = 0
        while True:
            try:
                return self._try(ask, deadline)
            except errors.UnavailableError:
                wait = min(_FIRST_WAIT * 2**tried, _LONGEST_WAIT)
                wait *= random.uniform(0.5, 1.0)  # not all clients at once
                left = deadline.left()
                if tried == self._retries or (left is not None and wait >= left):
                    raise
            time.sleep(wait)
            tried += 1


def _target(model, version, label, signature):
    if not isinstance(model, str) or not model:
        raise failures.invalid("ModelSpec has no name specified.")
    if version is not None and label is not None:
        raise failures.invalid("a version or a label is asked for, not both")
    return _Target(model, version, label, signature)


def _address(target):
    """(transport, with TLS?, address) of what Client takes."""
    if target.startswith("unix:"):
        return "grpc", False, target
    if "://" not in target:
        target = "grpc://" + target
    parts = urlsplit(target)
    if parts.scheme not in ("grpc", "grpcs", "http", "https"):
        raise ValueError(f"no transport is called {parts.scheme!r}: {target!r}")
    if not parts.hostname or parts.path.strip("/"):
        raise ValueError(f"HOST:PORT is wanted, not {target!r}")
    secure = parts.scheme.endswith("s")
    if parts.scheme.startswith("grpc"):
        return "grpc", secure, parts.netloc
    port = parts.port or (443 if secure else 80)
    return "http", secure, (parts.hostname, port)
