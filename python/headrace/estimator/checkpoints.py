"""What an Estimator's checkpoints say."""

from headrace.context import errors
from headrace.train import checkpoint_reader, checkpoint_state


def step_of(model_dir):
    """The step of the latest checkpoint, 0 where there is none."""
    path = checkpoint_state.latest_checkpoint(model_dir)
    if path is None:
        return 0
    try:
        return int(checkpoint_reader.load_variable(path, "global_step"))
    except (errors.NotFoundError, ValueError, KeyError):
        number = path.rpartition("-")[2]  # one saved by objects, if its name tells
        return int(number) if number.isdigit() else 0
