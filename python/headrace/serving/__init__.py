"""A client of model servers: TensorFlow Serving's protocols and the Open Inference
Protocol, over gRPC and HTTP, with NumPy arrays in and out.

    from headrace.serving import Client

    with Client("localhost:8500") as client:  # gRPC
        y = client.predict("digits", {"images": images})["outputs"]
    with Client("http://localhost:8501") as client:  # REST
        y = client.predict("digits", {"images": images})["outputs"]

Needs no engine and loads none. gRPC wants the packages grpcio and protobuf, REST none.
"""

from headrace.serving import protos
from headrace.serving.client import Client
from headrace.serving.replies import Prediction, Signature, TensorInfo, VersionStatus

__all__ = [
    "Client",
    "Prediction",
    "Signature",
    "TensorInfo",
    "VersionStatus",
    "protos",
]
