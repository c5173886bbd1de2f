"""What a session's run takes besides its feeds: RunOptions and RunMetadata."""


def timeout(options):
    """Milliseconds of the RunOptions, 0 for none.

    NotImplementedError for fields that nothing here serves.
    """
    if options is None:
        return 0
    if type(options).__name__ != "RunOptions":
        raise TypeError(
            f"`options` must be a RunOptions proto, got {type(options).__name__}"
        )
    if options.output_partition_graphs:
        raise NotImplementedError("RunOptions.output_partition_graphs is not supported")
    if options.inter_op_thread_pool > 0:
        raise NotImplementedError("RunOptions.inter_op_thread_pool: there is one pool")
    if options.HasField("debug_options"):
        raise NotImplementedError("RunOptions.debug_options is not supported")
    if options.timeout_in_ms < 0:
        raise ValueError(
            f"RunOptions.timeout_in_ms is negative: {options.timeout_in_ms}"
        )
    return options.timeout_in_ms


def wants_trace(options):
    return options is not None and options.trace_level > 0


def check_metadata(metadata):
    if metadata is not None and type(metadata).__name__ != "RunMetadata":
        raise TypeError(
            f"`run_metadata` must be a RunMetadata proto, got {type(metadata).__name__}"
        )
