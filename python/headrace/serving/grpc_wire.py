"""Calls over one gRPC channel, which threads share."""

from headrace.serving import failures

# Soon after a server is back it is asked again: gRPC's own start is a second.
_OPTIONS = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
]


def import_grpc(instead=" (http:// addresses need none)"):
    """The module of gRPC; ImportError that says what else may do where it is not there."""
    try:
        import grpc
    except ImportError:
        raise ImportError(
            f"gRPC needs the grpcio package: pip install grpcio{instead}"
        ) from None
    return grpc


class GrpcWire:
    """A channel to one server."""

    def __init__(self, address, tls, metadata):
        self._grpc = import_grpc()
        self._metadata = tuple(metadata)
        if tls:
            self._channel = self._grpc.secure_channel(
                address, self._credentials(tls), options=_OPTIONS
            )
        else:
            self._channel = self._grpc.insecure_channel(address, options=_OPTIONS)
        self._methods = {}  # by path; threads may make one twice

    def _credentials(self, tls):
        return self._grpc.ssl_channel_credentials(
            _read(tls.ca_file), _read(tls.key_file), _read(tls.certificate_file)
        )

    def close(self):
        self._channel.close()

    def ask(self, path, request, response_class, deadline):
        """The response; statuses as exceptions."""
        method = self._methods.get(path)
        if method is None:
            method = self._methods[path] = self._channel.unary_unary(
                path,
                request_serializer=type(request).SerializeToString,
                response_deserializer=response_class.FromString,
            )
        try:
            return method(request, timeout=deadline.left(), metadata=self._metadata)
        except self._grpc.RpcError as e:
            failure = failures.of_code(e.code().value[0], e.details() or "")
        except ValueError as e:  # what gRPC says of a closed channel
            failure = failures.invalid(str(e))
        raise failure from None


def _read(path):
    if not path:
        return None
    with open(path, "rb") as f:
        return f.read()
