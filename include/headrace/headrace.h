// Headrace's C++ front end: #include <headrace/headrace.h> and
//   namespace tf = headrace::tf;
#pragma once

#include "headrace/activations.h"      // IWYU pragma: export
#include "headrace/attention.h"        // IWYU pragma: export
#include "headrace/callbacks.h"        // IWYU pragma: export
#include "headrace/cancellation.h"     // IWYU pragma: export
#include "headrace/checkpoint.h"       // IWYU pragma: export
#include "headrace/confusion.h"        // IWYU pragma: export
#include "headrace/constraints.h"      // IWYU pragma: export
#include "headrace/convolution.h"      // IWYU pragma: export
#include "headrace/custom_gradient.h"  // IWYU pragma: export
#include "headrace/data.h"             // IWYU pragma: export
#include "headrace/error.h"            // IWYU pragma: export
#include "headrace/examples.h"         // IWYU pragma: export
#include "headrace/function.h"         // IWYU pragma: export
#include "headrace/functional.h"       // IWYU pragma: export
#include "headrace/gradient.h"         // IWYU pragma: export
#include "headrace/initializers.h"     // IWYU pragma: export
#include "headrace/layers.h"           // IWYU pragma: export
#include "headrace/losses.h"           // IWYU pragma: export
#include "headrace/merge.h"            // IWYU pragma: export
#include "headrace/metrics.h"          // IWYU pragma: export
#include "headrace/ops.h"              // IWYU pragma: export
#include "headrace/optimizer.h"        // IWYU pragma: export
#include "headrace/padding.h"          // IWYU pragma: export
#include "headrace/pooling.h"          // IWYU pragma: export
#include "headrace/random.h"           // IWYU pragma: export
#include "headrace/recurrent.h"        // IWYU pragma: export
#include "headrace/regularizers.h"     // IWYU pragma: export
#include "headrace/shaping.h"          // IWYU pragma: export
#include "headrace/symbolic.h"         // IWYU pragma: export
#include "headrace/tape.h"             // IWYU pragma: export
#include "headrace/tensor.h"           // IWYU pragma: export
#include "headrace/train.h"            // IWYU pragma: export
#include "headrace/variable.h"         // IWYU pragma: export
#include "headrace/version.h"          // IWYU pragma: export
#include "headrace/wrappers.h"         // IWYU pragma: export
