// A function of one row done for all rows at once: tf.vectorized_map.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "headrace/function.h"

namespace headrace::tf {

struct VectorizedMapOptions {
  // What has no form for all rows (sizes that follow from data, texts, changes
  // of variables) is done row by row.
  bool loops = true;
  // Told of each op that is because it has no form at all.
  std::function<void(const std::string& text)> warn;
};

// `fn` for each row of `elems`, its results stacked:
//
//   auto norms = tf::VectorizedMap(
//       [](const auto& row) { return std::vector{tf::L2Loss(row[0])}; }, {x});
//
// `fn` is traced once, for rows without their first dimension. Each of its ops
// becomes one op for all rows; what does not depend on the row is done once.
// Elements of one row serve all rows. Works eagerly and in traced functions;
// gradients flow through. Throws what `fn` throws; kInvalidArgument for no
// elements, scalars, different numbers of rows, and rows whose results differ
// in size; kUnimplemented without `loops` for what has no form for all rows.
HR_API std::vector<Tensor> VectorizedMap(
    const Function::Body& fn, const std::vector<Tensor>& elems,
    const VectorizedMapOptions& options = {});

}  // namespace headrace::tf
