"""tf.estimator.ModeKeys."""


class ModeKeys:
    """What a model_fn is called for."""

    TRAIN = "train"
    EVAL = "eval"
    PREDICT = "infer"


ALL = (ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT)
