"""tf.experimental.dtensor.DTensorDataset: a dataset whose elements have layouts."""


class DTensorDataset:
    pass
