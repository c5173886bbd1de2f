// Headrace's C++ front end, whole: #include <headrace/headrace.h> and
//   namespace tf = headrace::tf;
// The headers below may be included one by one. ops.h is made from the op
// registry when the library is built: a function per op, with upstream's names.
#pragma once

#include "headrace/cancellation.h"        // IWYU pragma: export
#include "headrace/checkpoint.h"          // IWYU pragma: export
#include "headrace/cluster.h"             // IWYU pragma: export
#include "headrace/constraints.h"         // IWYU pragma: export
#include "headrace/control_flow.h"        // IWYU pragma: export
#include "headrace/coordinator.h"         // IWYU pragma: export
#include "headrace/custom_gradient.h"     // IWYU pragma: export
#include "headrace/data.h"                // IWYU pragma: export
#include "headrace/elastic.h"             // IWYU pragma: export
#include "headrace/error.h"               // IWYU pragma: export
#include "headrace/examples.h"            // IWYU pragma: export
#include "headrace/fit/callbacks.h"       // IWYU pragma: export
#include "headrace/fit/confusion.h"       // IWYU pragma: export
#include "headrace/fit/losses.h"          // IWYU pragma: export
#include "headrace/fit/metrics.h"         // IWYU pragma: export
#include "headrace/fit/optimizer.h"       // IWYU pragma: export
#include "headrace/fit/train.h"           // IWYU pragma: export
#include "headrace/function.h"            // IWYU pragma: export
#include "headrace/gradient.h"            // IWYU pragma: export
#include "headrace/layer/activations.h"   // IWYU pragma: export
#include "headrace/layer/attention.h"     // IWYU pragma: export
#include "headrace/layer/convolution.h"   // IWYU pragma: export
#include "headrace/layer/functional.h"    // IWYU pragma: export
#include "headrace/layer/initializers.h"  // IWYU pragma: export
#include "headrace/layer/layers.h"        // IWYU pragma: export
#include "headrace/layer/merge.h"         // IWYU pragma: export
#include "headrace/layer/padding.h"       // IWYU pragma: export
#include "headrace/layer/pooling.h"       // IWYU pragma: export
#include "headrace/layer/recurrent.h"     // IWYU pragma: export
#include "headrace/layer/regularizers.h"  // IWYU pragma: export
#include "headrace/layer/shaping.h"       // IWYU pragma: export
#include "headrace/layer/symbolic.h"      // IWYU pragma: export
#include "headrace/layer/wrappers.h"      // IWYU pragma: export
#include "headrace/named_functions.h"     // IWYU pragma: export
#include "headrace/ops.h"                 // IWYU pragma: export
#include "headrace/profiler.h"            // IWYU pragma: export
#include "headrace/random.h"              // IWYU pragma: export
#include "headrace/safe_mode.h"           // IWYU pragma: export
#include "headrace/saved_model.h"         // IWYU pragma: export
#include "headrace/structure.h"           // IWYU pragma: export
#include "headrace/tape.h"                // IWYU pragma: export
#include "headrace/tensor.h"              // IWYU pragma: export
#include "headrace/variable.h"            // IWYU pragma: export
#include "headrace/vectorized_map.h"      // IWYU pragma: export
#include "headrace/version.h"             // IWYU pragma: export
