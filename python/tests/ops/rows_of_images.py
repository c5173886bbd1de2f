"""Rows of image files. Values are TensorFlow 2.21's."""

import base64

import numpy as np
from rows import formula

# 5 by 3 pixels, without loss.
_WEBP = base64.b64decode(
    "UklGRlYAAABXRUJQVlA4TEoAAAAvBIAAAHdAFmByD2FvBPnrFQSRtm0MN1NweiJt2xiuhNF7"
    "+vyTDVAUNo+0B8DlNp/9AFRDtkLN3N+XYQ4pxJBCLDFG9D+6uJM/AA=="
)


@formula("DecodeWebP")
def pixels_of_webp(tf, raw):
    pixels = (np.arange(45) * 37 + 11).astype(np.uint8).reshape(1, 3, 5, 3)
    given = [raw.DecodeWebP(contents=_WEBP, channels=c) for c in (0, 3)]
    return [given[0], pixels, given[1], pixels]
