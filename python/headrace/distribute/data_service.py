"""tf.data.experimental.service: datasets that other processes walk along.

A dispatcher knows the datasets, workers walk along them (data_servers.py), and clients
read what these make. All three are C++ (src/distributed/data_service); a dataset travels
as its graph.
"""

import enum

from headrace._load import _headrace, raw
from headrace.context import errors
from headrace.data import saved_spec
from headrace.data.dataset import Dataset, as_int, made
from headrace.data.functions import DatasetFunction, flat
from headrace.data.options import ExternalStatePolicy
from headrace.framework import conversion, dtypes
from headrace.framework.support import protos, signatures


class ShardingPolicy(enum.IntEnum):
    """How workers divide a dataset.

    OFF: each walks along all of it. DYNAMIC: each element of a source goes to the worker
    that first asks for it. FILE, DATA, FILE_OR_DATA: each worker of the dispatcher's
    `worker_addresses` has its part of the files, of the elements, or of what can be
    divided. HINT: as OFF, but `Dataset.shard(SHARD_HINT, SHARD_HINT)` is the worker's.
    """

    OFF = 0
    DYNAMIC = 1
    FILE = 2
    DATA = 3
    FILE_OR_DATA = 4
    HINT = 5


_MODES = {
    "parallel_epochs": ShardingPolicy.OFF,
    "distributed_epoch": ShardingPolicy.DYNAMIC,
}
# DataServiceMetadata's numbers.
_COMPRESSIONS = {"AUTO": 0, None: 1, "SNAPPY": 3}


def _message(name):
    return protos.message(f"tensorflow.data.{name}")()


class CrossTrainerCache:
    """Has the trainers of a job share what its workers made: each of them sees all of an
    infinite dataset that the cache still holds, and passes over the rest.

    Args:
      trainer_id: a name for this trainer, that no other has.

    Raises:
      ValueError: where it is empty.
    """

    def __init__(self, trainer_id):
        if not trainer_id:
            raise ValueError(
                "tf.data service cross-trainer cache requires a non-empty trainer ID."
            )
        self.trainer_id = trainer_id

    def _to_proto(self):
        made = _message("CrossTrainerCacheOptions")
        made.trainer_id = self.trainer_id
        return made


def _policy(mode):
    if mode in _MODES:
        return _MODES[mode]
    if isinstance(mode, ShardingPolicy):
        return mode
    raise ValueError(
        "tf.data service processing mode should be a "
        '`tf.data.experimental.service.ShardingPolicy`, `"parallel_epochs"`, or '
        f'`"distributed_epoch"`. Got {mode!r}.'
    )


def _text(value, name):
    if not isinstance(value, str):
        raise ValueError(
            f"`{name}` must be a string, but `{name}` was of type {type(value)}. "
            f"{name}={value}"
        )
    if not value:
        raise ValueError(f"`{name}` must not be empty")
    return value


def _parsed(service):
    """(protocol, address) of "grpc://host:port"; the protocol may be left out."""
    parts = _text(service, "service").split("://")
    if len(parts) == 1:
        return "grpc", parts[0]
    if len(parts) == 2:
        return tuple(parts)
    raise ValueError(f"Malformed `service` string has multiple '://': {service}.")


def _check_compression(compression):
    if compression not in _COMPRESSIONS:
        raise ValueError(
            f"Invalid `compression` argument: {compression}. Must be one of "
            f"{list(_COMPRESSIONS)}."
        )


def _check_job(job_name, consumer_index, num_consumers):
    if job_name is not None:
        _text(job_name, "job_name")
    if (consumer_index is None) != (num_consumers is None):
        raise ValueError(
            "Must either set both `consumer_index` and `num_consumers`, or neither. "
            f"consumer_index={consumer_index}, num_consumers={num_consumers}"
        )
    if num_consumers is not None and job_name is None:
        raise ValueError(
            "`job_name` must be set when setting `num_consumers`. num_consumers was set "
            f"to {num_consumers}."
        )


def _registered(service, dataset, compression, dataset_id=None):
    _check_compression(compression)
    protocol, address = _parsed(service)
    policy = dataset.options().experimental_external_state_policy
    metadata = _message("DataServiceMetadata")
    metadata.compression = _COMPRESSIONS[compression]
    try:
        metadata.element_spec = saved_spec.packed(dataset.element_spec)
    except (NotImplementedError, TypeError):
        pass  # who reads such elements says what they are like
    return raw.RegisterDatasetV2(
        dataset._variant_tensor,
        address=address,
        protocol=protocol,
        external_state_policy=(policy or ExternalStatePolicy.WARN).value,
        requested_dataset_id=dataset_id or "",
        metadata=metadata.SerializeToString(),
    )


def register_dataset(service, dataset, compression="AUTO", dataset_id=None):
    """Hands a dataset to a dispatcher.

    Args:
      service: "grpc://host:port" of the dispatcher.
      dataset: a Dataset that needs nothing of this process: variables and tables are sent
        with what they hold.
      compression: "AUTO" or None, as the elements are, or "SNAPPY", which is asked of the
        workers.
      dataset_id: the name that it gets there; a number of the dispatcher's by default.

    Returns:
      A string scalar, for from_dataset_id.

    Raises:
      errors.InvalidArgumentError: where another dataset has that name.
      errors.DeadlineExceededError: where the dispatcher does not answer in ten minutes.
    """
    if not isinstance(dataset, Dataset):
        raise AttributeError(
            f"'{type(dataset).__name__}' object has no attribute 'options'"
        )
    if dataset_id is not None:
        dataset_id = _text(dataset_id, "dataset_id")
    return _registered(service, dataset, compression, dataset_id)


def _same(*element):
    return element


def _or(number, otherwise):
    return otherwise if number is None else number


def _read(policy, service, dataset_id, spec, job_name, target_workers, reads):
    """The dataset of what workers make of a registered one."""
    protocol, address = _parsed(service)
    cache = reads["cross_trainer_cache"]
    mode = _message("ProcessingModeDef")
    mode.sharding_policy = int(policy)
    like = DatasetFunction(_same, "uncompress", [spec])
    variant = raw.DataServiceDatasetV4(
        dataset_id=dataset_id,
        processing_mode=mode.SerializeToString(),
        address=address,
        protocol=protocol,
        job_name=job_name or "",
        consumer_index=as_int(_or(reads["consumer_index"], -1)),
        num_consumers=as_int(_or(reads["num_consumers"], -1)),
        max_outstanding_requests=as_int(_or(reads["max_outstanding_requests"], -1)),
        iteration_counter=raw.DummyIterationCounter(),
        data_transfer_protocol=reads["data_transfer_protocol"] or "",
        target_workers=target_workers,
        uncompress_fn=like.function,
        cross_trainer_cache_options=(
            cache._to_proto().SerializeToString() if cache else b""
        ),
        **flat(spec),
    )
    name = "_DataServiceDatasetV2"
    return made("DataServiceDatasetV4", variant, spec, (), [like], name)


_READS = signatures.from_text(
    "consumer_index=None, num_consumers=None, max_outstanding_requests=None, "
    "data_transfer_protocol=None"
)


@signatures.taking(_READS, before="compression")
def distribute(
    processing_mode,
    service,
    job_name=None,
    compression="AUTO",
    cross_trainer_cache=None,
    target_workers="AUTO",
    **reads,
):
    """For Dataset.apply: what comes before it is done by the workers of a data service.

    Args:
      processing_mode: a ShardingPolicy, "parallel_epochs" (OFF) or "distributed_epoch"
        (DYNAMIC).
      service: "grpc://host:port" of the dispatcher.
      job_name: those who name the same job share its elements; each walk of a dataset is
        the next epoch of the job. Without one each walk is a job of its own.
      consumer_index, num_consumers: coordinated reads: in each round one worker gives each
        of so many consumers an element. The dataset must be infinite.
      max_outstanding_requests: elements that are asked for ahead, 16 by default.
      data_transfer_protocol: "grpc".
      compression: "AUTO" or None, as the elements are, or "SNAPPY".
      cross_trainer_cache: a CrossTrainerCache.
      target_workers: "AUTO" and "ANY", or "LOCAL": those of this process alone.

    Returns:
      A function of a Dataset that gives a Dataset.

    Raises:
      ValueError: for arguments that do not fit.
    """
    policy = _policy(processing_mode)
    _check_compression(compression)
    if job_name is not None:
        _text(job_name, "job_name")
    reads["cross_trainer_cache"] = cross_trainer_cache

    def apply(dataset):
        dataset_id = register_dataset(service, dataset, compression)
        _check_job(job_name, reads["consumer_index"], reads["num_consumers"])
        spec = dataset.element_spec
        return _read(policy, service, dataset_id, spec, job_name, target_workers, reads)

    return apply


def _spec_at(service, dataset_id):
    """What a dispatcher was told of a dataset's elements."""
    known = b""
    if _headrace.is_eager():
        text = conversion.convert_to_tensor(dataset_id, dtypes.string).numpy().decode()
        try:
            known, _ = _headrace.service_dataset(*_parsed(service), text)
        except errors.NotFoundError:
            pass
    else:
        text = dataset_id
    if known:
        return saved_spec.unpacked(known)
    raise ValueError(
        f"Failed to fetch element spec for dataset id {text} from tf.data service. If the "
        "dataset was registered in graph mode or inside a tf.function, the `element_spec` "
        "must be specified as an argument to `from_dataset_id`."
    )


@signatures.taking(_READS, before="cross_trainer_cache")
def from_dataset_id(
    processing_mode,
    service,
    dataset_id,
    element_spec=None,
    job_name=None,
    cross_trainer_cache=None,
    target_workers="AUTO",
    **reads,
):
    """The elements of a dataset that somebody registered, as workers make them.

    Args:
      processing_mode, service, job_name, consumer_index, num_consumers,
        max_outstanding_requests, data_transfer_protocol, cross_trainer_cache,
        target_workers: as of `distribute`.
      dataset_id: what register_dataset returned.
      element_spec: the structure of the elements; asked of the dispatcher by default.

    Returns:
      A Dataset.

    Raises:
      ValueError: for arguments that do not fit, and where nobody knows the structure.
      errors.NotFoundError: where no dataset has that id.
    """
    policy = _policy(processing_mode)
    _check_job(job_name, reads["consumer_index"], reads["num_consumers"])
    spec = _spec_at(service, dataset_id) if element_spec is None else element_spec
    reads["cross_trainer_cache"] = cross_trainer_cache
    return _read(policy, service, dataset_id, spec, job_name, target_workers, reads)
